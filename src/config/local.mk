noinst_LIBRARIES += src/config/libconfig.a
src_config_libconfig_a_SOURCES = \
	src/config/config.c src/config/config.h \
	src/config/difference.c src/config/difference.h \
	src/config/document.c \
	src/config/forms.c src/config/forms.h \
	src/config/import.c src/config/import.h \
	src/config/jsonc.c src/config/jsonc.h \
	src/config/listed_path.c src/config/listed_path.h \
	src/config/load.c src/config/load.h \
	src/config/options.c src/config/options.h \
	src/config/rules.c \
	src/config/self_signed.c src/config/self_signed.h \
	src/config/state_directory.c src/config/state_directory.h \
	src/config/table.c src/config/table.h \
	src/config/toml.c \
	src/config/tree.c src/config/tree.h \
	src/config/types.c \
	src/config/variables.c src/config/variables.h \
	src/config/yaml.c
CONFIG_TEST_LIBS = src/config/libconfig.a src/cluster/libcluster.a src/endpoint/libendpoint.a src/policy/libpolicy.a src/jsonrpc/libjsonrpc.a $(PCRE2_LIBS) $(AUTH_LIBS) $(YAML_LIBS) $(JANSSON_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += \
	src/config/address_test \
	src/config/config_test \
	src/config/difference_test \
	src/config/import_test \
	src/config/include_test \
	src/config/jsonc_test \
	src/config/listed_path_test \
	src/config/load_test \
	src/config/name_test \
	src/config/quantity_test \
	src/config/secret_test \
	src/config/self_signed_test \
	src/config/toml_test \
	src/config/yaml_test
src_config_address_test_SOURCES = src/config/address_test.c
src_config_address_test_LDADD = $(CONFIG_TEST_LIBS)
src_config_config_test_SOURCES = src/config/config_test.c
src_config_config_test_LDADD = $(CONFIG_TEST_LIBS)
src_config_difference_test_SOURCES = src/config/difference_test.c
src_config_difference_test_LDADD = $(CONFIG_TEST_LIBS)
src_config_include_test_SOURCES = src/config/include_test.c
src_config_include_test_LDADD = $(CONFIG_TEST_LIBS)
src_config_import_test_SOURCES = src/config/import_test.c
src_config_import_test_LDADD = $(CONFIG_TEST_LIBS)
src_config_jsonc_test_SOURCES = src/config/jsonc_test.c
src_config_jsonc_test_LDADD = $(CONFIG_TEST_LIBS)
src_config_listed_path_test_SOURCES = src/config/listed_path_test.c
src_config_listed_path_test_LDADD = $(CONFIG_TEST_LIBS)
src_config_load_test_SOURCES = src/config/load_test.c
src_config_load_test_LDADD = $(CONFIG_TEST_LIBS)
src_config_name_test_SOURCES = src/config/name_test.c
src_config_name_test_LDADD = $(CONFIG_TEST_LIBS)
src_config_quantity_test_SOURCES = src/config/quantity_test.c
src_config_quantity_test_LDADD = $(CONFIG_TEST_LIBS)
src_config_secret_test_SOURCES = src/config/secret_test.c
src_config_secret_test_LDADD = $(CONFIG_TEST_LIBS)
src_config_self_signed_test_SOURCES = src/config/self_signed_test.c
src_config_self_signed_test_LDADD = $(CONFIG_TEST_LIBS)
src_config_toml_test_SOURCES = src/config/toml_test.c
src_config_toml_test_LDADD = $(CONFIG_TEST_LIBS)
src_config_yaml_test_SOURCES = src/config/yaml_test.c
src_config_yaml_test_LDADD = $(CONFIG_TEST_LIBS)
EXTRA_DIST += conf/mcpgated.yaml
dist_man_MANS += docs/man/mcpgated.yaml.5
