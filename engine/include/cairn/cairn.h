/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_CAIRN_H
#define CAIRN_CAIRN_H

/* All of libcairn: the engine of cairnfs, a client of CairnDB buckets. */
#include <cairn/buffer.h>
#include <cairn/claim.h>
#include <cairn/commit.h>
#include <cairn/doc.h>
#include <cairn/error.h>
#include <cairn/json.h>
#include <cairn/key.h>
#include <cairn/lease.h>
#include <cairn/log.h>
#include <cairn/objects.h>
#include <cairn/store.h>
#include <cairn/timestamp.h>

#endif
