noinst_LIBRARIES += src/io/libio.a
src_io_libio_a_SOURCES = \
	src/io/address.c src/io/address.h \
	src/io/aside.c src/io/aside.h \
	src/io/ipc.c src/io/ipc.h src/io/ipc.def \
	src/io/ipc_channel.c src/io/ipc_channel.h \
	src/io/listen.c src/io/listen.h \
	src/io/loop.c src/io/loop.h \
	src/io/outq.c src/io/outq.h \
	src/io/pem.c src/io/pem.h \
	src/io/peer.c src/io/peer.h \
	src/io/proxy_header.c src/io/proxy_header.h \
	src/io/tls.c src/io/tls.h \
	src/io/tls_server.c src/io/tls_server.h \
	src/io/wire.c src/io/wire.h
IO_LIBS = src/io/libio.a src/obs/libobs.a src/base/libbase.a $(LIBEVENT_LIBS) $(OPENSSL_LIBS) $(UTF8PROC_LIBS)
check_PROGRAMS += src/io/aside_test src/io/io_test src/io/ipc_test src/io/address_test src/io/tls_test src/io/proxy_header_test src/io/peer_test
src_io_aside_test_SOURCES = src/io/aside_test.c
src_io_aside_test_LDADD = $(IO_LIBS) $(CMOCKA_LIBS)
src_io_io_test_SOURCES = src/io/io_test.c
src_io_io_test_LDADD = $(IO_LIBS) $(CMOCKA_LIBS)
src_io_ipc_test_SOURCES = src/io/ipc_test.c
src_io_ipc_test_LDADD = $(IO_LIBS) $(CMOCKA_LIBS)
src_io_address_test_SOURCES = src/io/address_test.c
src_io_address_test_LDADD = $(IO_LIBS) $(CMOCKA_LIBS)
src_io_tls_test_SOURCES = src/io/tls_test.c
src_io_tls_test_LDADD = $(IO_LIBS) $(CMOCKA_LIBS)
src_io_proxy_header_test_SOURCES = src/io/proxy_header_test.c
src_io_proxy_header_test_LDADD = $(IO_LIBS) $(CMOCKA_LIBS)
src_io_peer_test_SOURCES = src/io/peer_test.c
src_io_peer_test_LDADD = $(IO_LIBS) $(CMOCKA_LIBS)
