/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why something ended: the argument of every *_end function, and what clients and the log are told.
 */
#pragma once

enum reason {
#define X(id, text, status, code, data, message) REASON_##id,
#include "obs/reason.def"
	REASON_COUNT
};

struct reason_row {
	const char *text;    /* in the log */
	int http_status;     /* 0: none */
	int rpc_code;        /* 0: none */
	const char *data;    /* data.reason for clients; "" if they never see it */
	const char *message; /* message for clients; likewise */
};

const struct reason_row *reason_get(enum reason reason);
