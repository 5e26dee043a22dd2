/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl's easy interface, with the handle of auth/curl_handle. */
#include "ctl/web.h"

#include <stdlib.h>
#include <string.h>

#include "auth/curl_handle.h"
#include "auth/url.h"
#include "base/check.h"
#include "base/mem.h"

struct transfer {
	const struct web_question *question;
	struct web_answer *answer;
	CURL *easy;
	struct curl_slist *fields;
	bool is_refused;
	bool is_too_big;
	bool is_enough;
	char error[CURL_ERROR_SIZE];
};

/* ---- what libcurl calls ---- */

static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct transfer *transfer = arg;
	const struct address_filter address_filter = { .loopback = transfer->question->may_loopback,
						       .private = true };

	(void)purpose;
	return curl_handle_open_socket(&address_filter, address, &transfer->is_refused);
}

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
	struct transfer *transfer = arg;
	struct buf *body = &transfer->answer->body;
	size_t bytes = curl_handle_take_body(body, data, size * count, WEB_BODY_BYTES_MAX,
					     &transfer->is_too_big);
	bool ends_event =
		(body->len >= 2 && memcmp(body->data + body->len - 2, "\n\n", 2) == 0) ||
		(body->len >= 4 && memcmp(body->data + body->len - 4, "\r\n\r\n", 4) == 0);

	transfer->is_enough = transfer->question->is_enough != NULL && ends_event &&
			      transfer->question->is_enough(buf_slice(body));
	CHECK(body->len <= WEB_BODY_BYTES_MAX);
	return transfer->is_enough ? 0 : bytes;
}

/* ---- the question ---- */

static void set_question(struct transfer *transfer)
{
	const struct web_question *question = transfer->question;
	CURL *easy = transfer->easy;

	CHECK(easy != NULL && transfer->fields == NULL && question->method != NULL);
	curl_handle_add_field(&transfer->fields, "Accept",
			      question->accept != NULL ? question->accept :
			      question->body.n > 0     ? "application/json, text/event-stream" :
							 "application/json");
	if (question->token != NULL) {
		char *value = mem_printf("Bearer %s", question->token);

		curl_handle_add_field(&transfer->fields, "Authorization", value);
		explicit_bzero(value, strlen(value));
		free(value);
	}
	if (question->session != NULL)
		curl_handle_add_field(&transfer->fields, "Mcp-Session-Id", question->session);
	if (question->body.n > 0)
		curl_handle_set_body(easy, &transfer->fields, "application/json", question->body);
	curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, question->method);
	curl_easy_setopt(easy, CURLOPT_URL, question->url);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->fields);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transfer);
}

/* ---- the answer ---- */

static char *field_of(CURL *easy, const char *name)
{
	struct slice value = curl_handle_answer_field(easy, name);

	return value.p != NULL ? mem_dup_slice(value) : mem_strdup("");
}

static const char *hint_of(CURLcode code)
{
	static const struct {
		CURLcode code;
		const char *hint;
	} hints[] = {
		{ CURLE_COULDNT_RESOLVE_HOST, "; is the name right, and does DNS know it?" },
		{ CURLE_COULDNT_CONNECT, "; does it run, and is the port right?" },
		{ CURLE_SSL_CONNECT_ERROR, "; does this port speak TLS?" },
		{ CURLE_PEER_FAILED_VERIFICATION,
		  "; the certificate must name this host, be valid now, be signed by an authority "
		  "that clients trust, and be sent with its intermediate certificates" },
		{ CURLE_GOT_NOTHING, "; does this port speak HTTP, or only TLS?" },
	};

	for (size_t i = 0; i < ARRAY_LEN(hints); i++) {
		if (hints[i].code == code)
			return hints[i].hint;
	}
	CHECK(code != CURLE_OK);
	return "";
}

static void finish(struct transfer *transfer, CURLcode code)
{
	struct web_answer *answer = transfer->answer;
	struct curl_header *header;
	const char *address = NULL;
	long status = 0;

	curl_easy_getinfo(transfer->easy, CURLINFO_PRIMARY_IP, &address);
	answer->address = mem_strdup(address != NULL ? address : "");
	answer->type = field_of(transfer->easy, "Content-Type");
	answer->location = field_of(transfer->easy, "Location");
	answer->session = field_of(transfer->easy, "Mcp-Session-Id");
	for (size_t i = 0; curl_easy_header(transfer->easy, "WWW-Authenticate", i, CURLH_HEADER, -1,
					    &header) == CURLHE_OK;
	     i++)
		buf_printf(&answer->challenge, "%s%s", i > 0 ? ", " : "", header->value);
	if (code == CURLE_OK || transfer->is_enough) {
		curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
		answer->status = (int)status;
	} else if (transfer->is_too_big) {
		buf_append_str(&answer->error, "the answer is too large");
	} else if (transfer->is_refused) {
		buf_append_str(&answer->error,
			       "a stranger's address leads to loopback or to another "
			       "network that is not asked");
	} else {
		buf_printf(&answer->error, "%s%s",
			   transfer->error[0] != '\0' ? transfer->error : curl_easy_strerror(code),
			   hint_of(code));
	}
}

void web_ask(const struct web_question *question, struct web_answer *answer_r)
{
	const struct curl_handle_conf conf = {
		.agent = "mcpgatectl/" PACKAGE_VERSION,
		.connect_ms = WEB_CONNECT_MS,
		.total_ms = WEB_TOTAL_MS,
		.allow_http = true,
		.ca = question->ca,
	};
	struct transfer transfer = { .question = question, .answer = answer_r };
	struct url url;

	CHECK(question->url != NULL);
	*answer_r = (struct web_answer){ .status = 0 };
	if (url_parse(slice_str(question->url), &url) < 0 ||
	    (!url_is_https(&url) && !(slice_is_equal_nocase(url.scheme, SLICE_LIT("http")) &&
				      url_is_loopback(&url) && question->may_loopback))) {
		buf_append_str(&answer_r->error, "it is not an https URL");
		return;
	}
	transfer.easy = curl_handle_new(&conf);
	set_question(&transfer);
	finish(&transfer, curl_easy_perform(transfer.easy));
	curl_easy_cleanup(transfer.easy);
	curl_handle_free_fields(&transfer.fields);
}

void web_answer_fini(struct web_answer *answer)
{
	buf_fini(&answer->error);
	buf_fini(&answer->body);
	buf_fini(&answer->challenge);
	free(answer->type);
	free(answer->location);
	free(answer->session);
	free(answer->address);
	*answer = (struct web_answer){ .status = 0 };
}
