noinst_LIBRARIES += src/http/libhttp.a
src_http_libhttp_a_SOURCES = \
	src/http/conn.c src/http/conn.h \
	src/http/acceptor.c src/http/acceptor.h \
	src/http/places.c src/http/places.h \
	src/http/parse.c src/http/parse.h src/http/field.def \
	src/http/reply.c src/http/reply.h
HTTP_LIBS = src/http/libhttp.a $(IO_LIBS)
check_PROGRAMS += src/http/parse_test src/http/body_test src/http/conn_test src/http/forwarded_test
check_PROGRAMS += src/http/places_test
src_http_parse_test_SOURCES = src/http/parse_test.c
src_http_parse_test_LDADD = $(HTTP_LIBS) $(CMOCKA_LIBS)
src_http_body_test_SOURCES = src/http/body_test.c
src_http_body_test_LDADD = $(HTTP_LIBS) $(CMOCKA_LIBS)
src_http_conn_test_SOURCES = src/http/conn_test.c
src_http_conn_test_LDADD = $(HTTP_LIBS) $(CMOCKA_LIBS)
src_http_forwarded_test_SOURCES = src/http/forwarded_test.c
src_http_forwarded_test_LDADD = $(HTTP_LIBS) $(CMOCKA_LIBS)
src_http_places_test_SOURCES = src/http/places_test.c
src_http_places_test_LDADD = $(HTTP_LIBS) $(CMOCKA_LIBS)
