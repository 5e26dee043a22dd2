/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The certificate of --tls self, which nobody has to make: the key and the certificate are in the
 * state directory, for as many starts as it is valid and has all names. It signs nothing but
 * itself, so whoever trusts it trusts this daemon and nobody else.
 */
#pragma once

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"

/* Adds what other machines may call this one: its name, and its IPv4 addresses. */
void self_signed_add_names(struct slices *names);

/*
 * The paths of the two files whose first name this is. The caller frees them. -1: nothing says
 * where the state directory is.
 */
int self_signed_paths(const char *name, char **certificate_r, char **key_r, struct error *err)
	must_check;

/* What self_signed_keep has done. */
enum self_signed {
	SELF_SIGNED_KEPT,
	SELF_SIGNED_MADE,
	SELF_SIGNED_MADE_AGAIN, /* it was about to expire, or of another key */
	SELF_SIGNED_EXTENDED,   /* it lacked a name */
};
/*
 * Makes what is missing of the two files of `first`, or cannot be used for all of `names` (IPv6 addresses in brackets) during
 * the next month. A key that can be used is kept, and so are the names of its certificate: another daemon may use them. -1: err says why there is none.
 */
int self_signed_keep(const char *first, struct slices names, enum self_signed *done_r,
		     struct error *err) must_check;

#define SELF_SIGNED_SHOWN_BYTES 96
struct self_signed_facts {
	char fingerprint[SELF_SIGNED_SHOWN_BYTES]; /* SHA-256, as openssl shows it */
	char until[SELF_SIGNED_SHOWN_BYTES];       /* as openssl shows it */
};
/* Reads the certificate of that path. */
int self_signed_describe(const char *path, struct self_signed_facts *facts_r, struct error *err)
	must_check;
