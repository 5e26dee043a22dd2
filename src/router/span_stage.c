/* SPDX-License-Identifier: Apache-2.0 */
/* See span_stage.h. */
#include "router/span_stage.h"

#include "trace/exporter.h"
#include "trace/fake_fetcher.h"

static json_t *taken;

struct exporter *span_stage_open(struct loop *loop, unsigned int interval_ms)
{
	static char name[] = "s";
	const struct exporter_conf conf = { 100, interval_ms, name };
	struct exporter *exporter = exporter_new(loop);

	exporter_use(exporter, fake_fetcher_start(loop), &conf);
	return exporter;
}

void span_stage_close(struct exporter **exporter)
{
	json_decref(taken);
	taken = NULL;
	exporter_free(exporter);
	fake_fetcher_stop();
}

size_t span_stage_take(void)
{
	json_decref(taken);
	taken = fake_fetcher_take();
	fake_fetcher_answer(200, 0, "{}");
	return fake_fetcher_count(taken);
}

const char *span_stage_attribute(size_t number, const char *name)
{
	return fake_fetcher_attribute(fake_fetcher_span(taken, number), name);
}
