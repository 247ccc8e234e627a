/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_BANNED_H
#define CAIRN_BANNED_H

/* Included before every file of ours: using one of these fails to compile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat sprintf vsprintf strtok gmtime localtime atoi atol gets

#endif
