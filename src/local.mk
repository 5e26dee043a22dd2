bin_PROGRAMS += mcpgated
mcpgated_SOURCES = src/main.c src/gateway.c src/gateway.h src/identities.c src/identities.h
mcpgated_CPPFLAGS = $(AM_CPPFLAGS) -DSYSCONFDIR=\"$(sysconfdir)\"
mcpgated_LDADD = src/keeper/libkeeper.a src/config/libconfig.a $(ENDPOINT_LIBS) \
	$(JANSSON_LIBS) $(YAML_LIBS) $(SECCOMP_LIBS)
