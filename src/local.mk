bin_PROGRAMS += mcpgated
mcpgated_SOURCES = \
	src/admin_server.c src/admin_server.h \
	src/gateway.c src/gateway.h \
	src/server_certificates.c src/server_certificates.h \
	src/main.c
mcpgated_CPPFLAGS = $(AM_CPPFLAGS) -DSYSCONFDIR=\"$(sysconfdir)\"
mcpgated_LDADD = src/keeper/libkeeper.a src/config/libconfig.a $(ADMIN_LIBS) \
	$(JANSSON_LIBS) $(YAML_LIBS) $(SECCOMP_LIBS)
