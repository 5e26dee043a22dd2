noinst_LIBRARIES += src/endpoint/libendpoint.a
src_endpoint_libendpoint_a_SOURCES = \
	src/endpoint/answer.c src/endpoint/answer.h \
	src/endpoint/challenge.c src/endpoint/challenge.h \
	src/endpoint/events.c src/endpoint/events.h \
	src/endpoint/failures.c src/endpoint/failures.h \
	src/endpoint/gate.c src/endpoint/gate.h \
	src/endpoint/guard.c src/endpoint/guard.h \
	src/endpoint/http_sse.c src/endpoint/http_sse.h \
	src/endpoint/intake.c src/endpoint/intake.h \
	src/endpoint/judge.c \
	src/endpoint/keys.c src/endpoint/keys.h \
	src/endpoint/listening.c \
	src/endpoint/metadata.c src/endpoint/metadata.h \
	src/endpoint/needs.c \
	src/endpoint/registration.c \
	src/endpoint/scopes.c src/endpoint/scopes.h \
	src/endpoint/streamable.c src/endpoint/streamable.h \
	src/endpoint/vigil.c src/endpoint/vigil.h \
	src/endpoint/waiting.c src/endpoint/waiting.h
ENDPOINT_LIBS = src/endpoint/libendpoint.a src/http/libhttp.a $(ROUTER_LIBS) $(AUTH_LIBS)
check_PROGRAMS += src/endpoint/failures_test src/endpoint/gate_test src/endpoint/vigil_test
src_endpoint_failures_test_SOURCES = src/endpoint/failures_test.c
src_endpoint_failures_test_LDADD = $(ENDPOINT_LIBS) $(CMOCKA_LIBS)
src_endpoint_gate_test_SOURCES = src/endpoint/gate_test.c $(FAKE_KEEPER)
src_endpoint_gate_test_LDADD = $(ENDPOINT_LIBS) $(CMOCKA_LIBS)
src_endpoint_vigil_test_SOURCES = src/endpoint/vigil_test.c
src_endpoint_vigil_test_LDADD = $(ENDPOINT_LIBS) $(CMOCKA_LIBS)
