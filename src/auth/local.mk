noinst_LIBRARIES += src/auth/libauth.a
src_auth_libauth_a_SOURCES = \
	src/auth/assertion.c src/auth/assertion.h \
	src/auth/document.c src/auth/document.h \
	src/auth/dpop.c src/auth/dpop.h \
	src/auth/client_auth.c src/auth/client_auth.h \
	src/auth/collector.c src/auth/collector.h \
	src/auth/curl_handle.c src/auth/curl_handle.h \
	src/auth/fetch.c src/auth/fetch.h \
	src/auth/fetch_client.c src/auth/fetch_client.h \
	src/auth/fetch_service.c src/auth/fetch_service.h \
	src/auth/grant.c src/auth/grant.h src/auth/verdict.def \
	src/auth/issuer.c src/auth/issuer.h \
	src/auth/jwt.c src/auth/jwt.h \
	src/auth/signing_key.c src/auth/signing_key.h \
	src/auth/url.c src/auth/url.h \
	src/auth/verifier.c src/auth/verifier.h
AUTH_LIBS = src/auth/libauth.a $(IO_LIBS) $(JANSSON_LIBS) $(OPENSSL_LIBS) -lm
# With what fetches and signs: of the programs, mcpgated-fetch and mcpgatectl alone.
FETCH_LIBS = $(AUTH_LIBS) $(CURL_LIBS) $(JWT_LIBS)
check_PROGRAMS += src/auth/jwt_test
src_auth_jwt_test_SOURCES = src/auth/jwt_test.c src/auth/fake_signer.c src/auth/fake_signer.h
src_auth_jwt_test_LDADD = $(AUTH_LIBS) $(JWT_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/auth/verifier_test
src_auth_verifier_test_SOURCES = src/auth/verifier_test.c \
	src/auth/fake_issuer.c src/auth/fake_issuer.h src/auth/fake_signer.c src/auth/fake_signer.h
src_auth_verifier_test_LDADD = $(FETCH_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/auth/fetch_test
src_auth_fetch_test_SOURCES = src/auth/fetch_test.c
src_auth_fetch_test_LDADD = $(FETCH_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/auth/grant_test src/auth/dpop_test
src_auth_grant_test_SOURCES = src/auth/grant_test.c
src_auth_grant_test_LDADD = $(AUTH_LIBS) $(CMOCKA_LIBS)
src_auth_dpop_test_SOURCES = src/auth/dpop_test.c src/auth/fake_signer.c src/auth/fake_signer.h
src_auth_dpop_test_LDADD = $(AUTH_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/auth/fetch_service_test
src_auth_fetch_service_test_SOURCES = src/auth/fetch_service_test.c src/auth/fake_issuer.c src/auth/fake_issuer.h \
	src/auth/fake_signer.c src/auth/fake_signer.h
src_auth_fetch_service_test_LDADD = $(FETCH_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/auth/client_auth_test
src_auth_client_auth_test_SOURCES = src/auth/client_auth_test.c src/auth/fake_signer.c src/auth/fake_signer.h
src_auth_client_auth_test_LDADD = $(AUTH_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += src/auth/assertion_test
src_auth_assertion_test_SOURCES = src/auth/assertion_test.c src/auth/fake_signer.c src/auth/fake_signer.h
src_auth_assertion_test_LDADD = $(FETCH_LIBS) $(CMOCKA_LIBS)
