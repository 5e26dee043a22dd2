/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No authority: keyUsage and basicConstraints say so, and a client that takes it as one finds nothing
 * else that it has signed. 820 days, because some systems refuse certificates of more than 825.
 */
#include "config/self_signed.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/random.h"
#include "config/config.h"
#include "config/forms.h"
#include "config/listed_path.h"
#include "config/state_directory.h"
#include "config/table.h"
#include "io/pem.h"

#define DAY (24L * 60 * 60)
#define VALID_DAYS 820
#define RENEW_DAYS 30
#define NAMES_MAX 32 /* more networks than that has a machine for containers alone */

/* ---- names ---- */

static void add_addresses(struct slices *names)
{
	struct ifaddrs *all = NULL;

	if (getifaddrs(&all) < 0)
		return;
	for (const struct ifaddrs *one = all; one != NULL && names->count < NAMES_MAX;
	     one = one->ifa_next) {
		const struct sockaddr_in *in = (const void *)one->ifa_addr;
		char text[INET_ADDRSTRLEN];

		if (in == NULL || in->sin_family != AF_INET || (one->ifa_flags & IFF_UP) == 0 ||
		    (one->ifa_flags & IFF_LOOPBACK) != 0)
			continue;
		CHECK(inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text)) != NULL);
		if (!slices_has(*names, slice_str(text)))
			texts_add(names, slice_str(text));
	}
	freeifaddrs(all);
}

void self_signed_add_names(struct slices *names)
{
	char name[256] = "";

	if (gethostname(name, sizeof(name) - 1) == 0 && form_host(slice_str(name), NULL) == 0 &&
	    strcmp(name, "localhost") != 0)
		texts_add(names, slice_str(name));
	add_addresses(names);
}

/* In brackets or not; NULL: it is no address. The caller frees it. */
static ASN1_OCTET_STRING *address_of(struct slice name)
{
	bool is_v6 = name.n > 2 && name.p[0] == '[';
	at_end(mem_free) char *text =
		mem_dup_slice(is_v6 ? slice_of(name.p + 1, name.n - 2) : name);
	ASN1_OCTET_STRING *address = a2i_IPADDRESS(text);

	return address;
}

static bool has_name(X509 *certificate, struct slice name)
{
	ASN1_OCTET_STRING *address = address_of(name);
	bool has_it = address != NULL ? X509_check_ip(certificate, ASN1_STRING_get0_data(address),
						      (size_t)ASN1_STRING_length(address), 0) == 1 :
					X509_check_host(certificate, name.p, name.n, 0, NULL) == 1;

	ASN1_OCTET_STRING_free(address);
	return has_it;
}

/* Nobody connects to every address. */
static bool is_for_certificates(struct slice name)
{
	return !slice_is_equal(name, SLICE_LIT("0.0.0.0")) &&
	       !slice_is_equal(name, SLICE_LIT("[::]"));
}

/* ---- a new one ---- */

static GENERAL_NAME *make_name(struct slice name)
{
	GENERAL_NAME *made = GENERAL_NAME_new();
	ASN1_STRING *value = address_of(name);
	int type = value != NULL ? GEN_IPADD : GEN_DNS;

	if (value == NULL) {
		value = ASN1_IA5STRING_new();
		CHECK(value != NULL && ASN1_STRING_set(value, name.p, (int)name.n) == 1);
	}
	CHECK(made != NULL);
	GENERAL_NAME_set0_value(made, type, value);
	return made;
}

static bool has_equal(const GENERAL_NAMES *all, GENERAL_NAME *name)
{
	for (int i = 0; i < sk_GENERAL_NAME_num(all); i++)
		if (GENERAL_NAME_cmp(sk_GENERAL_NAME_value(all, i), name) == 0)
			return true;
	return false;
}

/* Takes those of the certificate before. */
static void add_names_of(const X509 *before, GENERAL_NAMES *all)
{
	GENERAL_NAMES *old =
		before != NULL ? X509_get_ext_d2i(before, NID_subject_alt_name, NULL, NULL) : NULL;
	GENERAL_NAME *name;

	while (old != NULL && (name = sk_GENERAL_NAME_shift(old)) != NULL) {
		if (sk_GENERAL_NAME_num(all) < 2 * NAMES_MAX && !has_equal(all, name))
			CHECK(sk_GENERAL_NAME_push(all, name) > 0);
		else
			GENERAL_NAME_free(name);
	}
	GENERAL_NAMES_free(old);
}

static GENERAL_NAMES *make_names(struct slices names, const X509 *before)
{
	GENERAL_NAMES *all = GENERAL_NAMES_new();

	CHECK(all != NULL);
	for (size_t i = 0; i < names.count; i++)
		if (is_for_certificates(names.items[i]))
			CHECK(sk_GENERAL_NAME_push(all, make_name(names.items[i])) > 0);
	add_names_of(before, all);
	return all;
}

static bool add_extensions(X509 *certificate, struct slices names, const X509 *before)
{
	static const struct {
		int nid;
		const char *value;
	} fixed[] = {
		{ NID_basic_constraints, "critical,CA:FALSE" },
		{ NID_key_usage, "critical,digitalSignature" },
		{ NID_ext_key_usage, "serverAuth" },
	};
	GENERAL_NAMES *all = make_names(names, before);
	bool is_good = X509_add1_ext_i2d(certificate, NID_subject_alt_name, all, 0,
					 X509V3_ADD_DEFAULT) == 1;

	for (size_t i = 0; i < ARRAY_LEN(fixed) && is_good; i++) {
		X509_EXTENSION *extension =
			X509V3_EXT_nconf_nid(NULL, NULL, fixed[i].nid, fixed[i].value);

		is_good = extension != NULL && X509_add_ext(certificate, extension, -1) == 1;
		X509_EXTENSION_free(extension);
	}
	GENERAL_NAMES_free(all);
	return is_good;
}

/* The common name has room for 64 characters, and clients go by the others. */
static bool put_name_and_time(X509 *certificate, struct slice first)
{
	X509_NAME *name = X509_get_subject_name(certificate);
	int length = first.n < 64 ? (int)first.n : 64;
	uint64_t serial;

	random_bytes(&serial, sizeof(serial));
	return X509_set_version(certificate, 2) == 1 &&
	       ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1) == 1 &&
	       X509_gmtime_adj(X509_getm_notBefore(certificate), -DAY) != NULL &&
	       X509_gmtime_adj(X509_getm_notAfter(certificate), (VALID_DAYS - 1) * DAY) != NULL &&
	       X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_UTF8,
					  (const unsigned char *)first.p, length, -1, 0) == 1 &&
	       X509_set_issuer_name(certificate, name) == 1;
}

/* Also for the names of `before`, unless it is NULL. NULL: err says why. */
static X509 *make_certificate(EVP_PKEY *key, const char *first, struct slices names,
			      const X509 *before, struct error *err)
{
	X509 *certificate = X509_new();

	CHECK(certificate != NULL);
	if (put_name_and_time(certificate, slice_str(first)) &&
	    X509_set_pubkey(certificate, key) == 1 && add_extensions(certificate, names, before) &&
	    X509_sign(certificate, key, EVP_sha256()) > 0)
		return certificate;
	pem_error(err, "--tls self: no certificate can be made");
	X509_free(certificate);
	return NULL;
}

/* ---- the files ---- */

int self_signed_paths(const char *name, char **certificate_r, char **key_r, struct error *err)
{
	at_end(mem_free) char *directory = state_directory_path();

	if (directory == NULL)
		return error_set(err, ERROR_INVALID,
				 "--tls self: neither STATE_DIRECTORY nor HOME says where the "
				 "certificate is kept");
	*certificate_r = mem_printf("%s/%s.crt", directory, name);
	*key_r = mem_printf("%s/%s.key", directory, name);
	return 0;
}

/* Takes the BIO, which holds PEM. */
static int put_pem(int directory, const char *name, BIO *bio, struct error *err)
{
	char *data = NULL;
	long size = BIO_get_mem_data(bio, &data);
	struct slice text = slice_of(data, size > 0 ? (size_t)size : 0);
	int result = text.n > 0 ? state_file_put(directory, name, &text, 1, err) :
				  pem_error(err, "--tls self: cannot be written as PEM");

	BIO_free(bio); /* overwrites it, if it is for keys */
	return result;
}

/* The one in the file; or, where none can be used, a new one. NULL: err says why there is none. */
static EVP_PKEY *keep_key(int directory, const char *name, struct error *err)
{
	at_end(buf_wipe) struct buf text = { 0 };
	EVP_PKEY *key = NULL;
	BIO *bio;

	if (state_file_get(directory, name, CERTIFICATES_BYTES_MAX, &text, NULL) == 1)
		key = pem_read_key(buf_slice(&text), NULL);
	if (key != NULL)
		return key;
	key = EVP_EC_gen("P-256");
	bio = BIO_new(BIO_s_secmem());
	CHECK(bio != NULL);
	if (key == NULL || PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) != 1) {
		pem_error(err, "--tls self: no key can be made");
		BIO_free(bio);
	} else if (put_pem(directory, name, bio, err) == 0) {
		return key;
	}
	EVP_PKEY_free(key);
	return NULL;
}

/* NULL: there is none that can be read. */
static X509 *read_certificate(int directory, const char *name)
{
	at_end(buf_fini) struct buf text = { 0 };
	STACK_OF(X509) *chain = NULL;
	X509 *certificate = NULL;

	if (state_file_get(directory, name, CERTIFICATES_BYTES_MAX, &text, NULL) == 1)
		chain = pem_read_certificates(buf_slice(&text), NULL);
	if (chain != NULL)
		certificate = sk_X509_shift(chain);
	sk_X509_pop_free(chain, X509_free);
	return certificate;
}

/* What has to be done. */
static enum self_signed judge(X509 *certificate, EVP_PKEY *key, struct slices names)
{
	int days = 0, seconds = 0;

	if (certificate == NULL)
		return SELF_SIGNED_MADE;
	if (X509_check_private_key(certificate, key) != 1 ||
	    X509_cmp_current_time(X509_get0_notBefore(certificate)) >= 0 ||
	    ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(certificate)) != 1 ||
	    days < RENEW_DAYS)
		return SELF_SIGNED_MADE_AGAIN;
	for (size_t i = 0; i < names.count; i++)
		if (is_for_certificates(names.items[i]) && !has_name(certificate, names.items[i]))
			return SELF_SIGNED_EXTENDED;
	return SELF_SIGNED_KEPT;
}

static int put_certificate(int directory, const char *name, const X509 *certificate,
			   struct error *err)
{
	BIO *bio = BIO_new(BIO_s_mem());

	CHECK(bio != NULL);
	(void)PEM_write_bio_X509(bio, certificate); /* put_pem finds whether it is there */
	return put_pem(directory, name, bio, err);
}

int self_signed_keep(const char *first, struct slices names, enum self_signed *done_r,
		     struct error *err)
{
	at_end(file_close) int directory = state_directory_open(true, err);
	at_end(mem_free) char *key_name = mem_printf("%s.key", first),
			      *name = mem_printf("%s.crt", first);
	EVP_PKEY *key = directory >= 0 ? keep_key(directory, key_name, err) : NULL;
	X509 *before = key != NULL ? read_certificate(directory, name) : NULL;
	X509 *made = NULL;
	int result = -1;

	if (key != NULL)
		*done_r = judge(before, key, names);
	if (key != NULL && *done_r == SELF_SIGNED_KEPT)
		result = 0;
	else if (key != NULL)
		made = make_certificate(key, first, names, before, err);
	if (made != NULL)
		result = put_certificate(directory, name, made, err);
	X509_free(made);
	X509_free(before);
	EVP_PKEY_free(key);
	return result;
}

/* ---- what is said of it ---- */

static void show_fingerprint(const X509 *certificate, char text_r[SELF_SIGNED_SHOWN_BYTES])
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned int length = 0;

	CHECK(X509_digest(certificate, EVP_sha256(), digest, &length) == 1);
	CHECK(length * 3 <= SELF_SIGNED_SHOWN_BYTES);
	for (unsigned int i = 0; i < length; i++)
		snprintf(text_r + (size_t)i * 3, SELF_SIGNED_SHOWN_BYTES - (size_t)i * 3, "%02X%s",
			 digest[i], i + 1 < length ? ":" : "");
}

int self_signed_describe(const char *path, struct self_signed_facts *facts_r, struct error *err)
{
	static const struct listed_writers none = { NULL, NULL };
	at_end(buf_fini) struct buf text = { 0 };
	STACK_OF(X509) *chain = NULL;
	BIO *until = BIO_new(BIO_s_mem());
	int length = 0;

	CHECK(until != NULL);
	if (file_read(path, &none, CERTIFICATES_BYTES_MAX, &text, NULL, err) == 0)
		chain = pem_read_certificates(buf_slice(&text), err);
	if (chain != NULL) {
		const X509 *leaf = sk_X509_value(chain, 0);

		show_fingerprint(leaf, facts_r->fingerprint);
		ASN1_TIME_print(until, X509_get0_notAfter(leaf));
		length = BIO_read(until, facts_r->until, SELF_SIGNED_SHOWN_BYTES - 1);
		facts_r->until[length > 0 ? length : 0] = '\0';
	}
	BIO_free(until);
	sk_X509_pop_free(chain, X509_free);
	return chain != NULL ? 0 : -1;
}
