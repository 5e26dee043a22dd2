/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything variable in the page is escaped: public_url, or the Host, which was checked to be one
 * of ours, and paths of the configuration.
 */
#include "endpoint/landing.h"

#include "base/buf.h"
#include "process/server.h"

static bool names(struct slice accept, const char *type)
{
	size_t n = strlen(type);

	for (size_t i = 0; i + n <= accept.n; i++)
		if (slice_is_equal_nocase(slice_of(accept.p + i, n), slice_of(type, n)))
			return true;
	return false;
}

bool landing_is_wanted(const struct frontend *frontend, const struct http_request *request)
{
	struct slice accept = request->fields[HTTP_ACCEPT];

	return request->method == HTTP_GET && !frontend->conf.is_operators &&
	       names(accept, "text/html") && !names(accept, "text/event-stream");
}

static void append_escaped(struct buf *out, struct slice text)
{
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (c == '&' || c == '<' || c == '>' || c == '"' || c == '\'' || c < ' ' ||
		    c == 0x7f)
			buf_printf(out, "&#%d;", (unsigned char)c);
		else
			buf_append_char(out, c);
	}
}

/*
 * Only to clients on this machine, if no token is needed: they could read the addresses in a
 * configuration, too.
 */
static bool may_tell_servers(const struct frontend *frontend, const struct answer *answer)
{
	return frontend->conf.authorization.mode == AUTHORIZATION_NONE &&
	       peer_is_loopback(*http_conn_client(answer->conn));
}

/* As config/origin writes it; without public_url, as the browser has reached us. */
static void append_origin(struct buf *page, const struct frontend *frontend,
			  const struct answer *answer, struct slice host)
{
	struct slice public_url = frontend->conf.authorization.public_url;

	if (public_url.n == 0 && host.n > 0)
		buf_append_str(page, http_conn_has_tls(answer->conn) ? "https://" : "http://");
	append_escaped(page, public_url.n > 0 ? public_url : host);
}

static void append_servers(struct buf *page, const struct frontend *frontend,
			   const struct answer *answer, struct slice host)
{
	buf_append_str(page, "<p>The addresses here:</p>\n<ul>\n");
	for (size_t i = 0; i < frontend->conf.endpoint_count; i++) {
		if (frontend->conf.endpoints[i].server == NULL ||
		    frontend->conf.endpoints[i].server->is_retired)
			continue;
		buf_append_str(page, "<li><code>");
		append_origin(page, frontend, answer, host);
		append_escaped(page, frontend->conf.endpoints[i].path);
		buf_append_str(page, "</code></li>\n");
	}
	buf_append_str(page, "</ul>\n");
}

void landing_send(const struct frontend *frontend, const struct answer *answer,
		  const struct http_request *request)
{
	static const char head[] =
		"<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
		"<title>mcpgated</title>\n<h1>mcpgated</h1>\n"
		"<p>This is a gateway for the Model Context Protocol (MCP). It is for programs that "
		"speak MCP: there is nothing to see in a browser.</p>\n"
		"<p>To connect, give your client the address of a server here, with the transport "
		"&ldquo;http&rdquo; (Streamable HTTP):</p>\n"
		"<pre>{\"mcpServers\": {\"demo\": {\"type\": \"http\", \"url\": "
		"\"https://HOST/NAME/mcp\"}}}</pre>\n";
	struct buf fields = { 0 };
	struct buf page = { 0 };

	buf_append_str(&page, head);
	if (may_tell_servers(frontend, answer))
		append_servers(&page, frontend, answer, request->fields[HTTP_HOST]);
	else
		buf_append_str(&page, "<p>Who runs this gateway knows its addresses, and whether a "
				      "token is needed.</p>\n");
	buf_append_str(&page, "</html>\n");
	buf_append_str(&fields,
		       "Content-Security-Policy: default-src 'none'; base-uri 'none'; "
		       "form-action 'none'; frame-ancestors 'none'\r\n"
		       "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
		       "Cache-Control: no-store\r\n");
	answer_append_fields(&fields, answer);
	http_reply(answer->conn,
		   &(struct http_reply){ .status = 200,
					 .content_type = "text/html; charset=utf-8",
					 .fields = (struct slice[]){ buf_slice(&fields) },
					 .field_count = 1,
					 .parts = (struct slice[]){ buf_slice(&page) },
					 .part_count = 1 });
	buf_fini(&fields);
	buf_fini(&page);
}
