bin_PROGRAMS += mcpgated
mcpgated_SOURCES = \
	src/authorization.c src/authorization.h \
	src/desk.c src/desk.h \
	src/gateway.c src/gateway.h \
	src/identities.c src/identities.h \
	src/main.c
mcpgated_CPPFLAGS = $(AM_CPPFLAGS) -DSYSCONFDIR=\"$(sysconfdir)\"
mcpgated_LDADD = src/keeper/libkeeper.a src/config/libconfig.a $(ADMIN_LIBS) \
	$(JANSSON_LIBS) $(YAML_LIBS) $(SECCOMP_LIBS)
