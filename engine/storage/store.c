/* SPDX-License-Identifier: MIT */
#include <cairn/cairn.h>
