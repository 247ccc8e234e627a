/* SPDX-License-Identifier: MIT */
#include "scripted_server.h"

#include <sys/stat.h>

#include <ftw.h>
#include <unistd.h>

#include "storage/credentials.h"

#define SECOND ((int64_t)1000000)

struct world {
	char home[64];
	struct scripted_server *server;
	struct cairn_credential_source *source;
	struct cairn_call call;
};

static const char *const variables[] = {
	"AWS_ACCESS_KEY_ID",
	"AWS_SECRET_ACCESS_KEY",
	"AWS_SESSION_TOKEN",
	"AWS_PROFILE",
	"AWS_SHARED_CREDENTIALS_FILE",
	"AWS_CONFIG_FILE",
	"AWS_WEB_IDENTITY_TOKEN_FILE",
	"AWS_ROLE_ARN",
	"AWS_ROLE_SESSION_NAME",
	"AWS_ENDPOINT_URL_STS",
	"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
	"AWS_CONTAINER_CREDENTIALS_FULL_URI",
	"AWS_CONTAINER_AUTHORIZATION_TOKEN",
	"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
	"AWS_EC2_METADATA_SERVICE_ENDPOINT",
};

static void set(const char *name, const char *value)
{
	assert_int_equal(setenv(name, value, 1), 0);
}

static void source_new(struct world *world, const char *profile)
{
	const struct cairn_credential_options options = { .profile = profile };
	cairn_credential_source_free(world->source);
	assert_int_equal(cairn_credential_source_new(&options, &world->source, NULL), 0);
}

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	char path[100];
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		(void)unsetenv(variables[i]);
	(void)snprintf(world->home, sizeof(world->home), "/tmp/cairn-test-XXXXXX");
	assert_non_null(mkdtemp(world->home));
	set("HOME", world->home);
	set("AWS_EC2_METADATA_DISABLED", "true");
	(void)snprintf(path, sizeof(path), "%s/.aws", world->home);
	assert_int_equal(mkdir(path, 0700), 0);
	world->server = scripted_server_start();
	source_new(world, NULL);
	*state = world;
	return 0;
}

static int take_away(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	(void)status;
	(void)type;
	(void)walk;
	return remove(path);
}

static int tear_down(void **state)
{
	struct world *world = *state;
	cairn_credential_source_free(world->source);
	scripted_server_stop(world->server);
	assert_int_equal(nftw(world->home, take_away, 16, FTW_DEPTH | FTW_PHYS), 0);
	free(world);
	return 0;
}

static void write_file(struct world *world, const char *name, const char *text)
{
	char path[200];
	(void)snprintf(path, sizeof(path), "%s/%s", world->home, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void expect(struct world *world, const char *access, const char *secret, const char *token)
{
	struct cairn_credentials *found = NULL;
	world->call.deadline = cairn_clock() + 20 * SECOND;
	int status = cairn_credentials_get(world->source, &world->call, &found);
	if (status)
		fail_msg("%s", world->call.error.text);
	assert_string_equal(found->access_key, access);
	assert_string_equal(found->secret_key, secret);
	assert_string_equal(found->token, token);
	cairn_credentials_unref(found);
}

static void expect_failure(struct world *world, int expected, const char *word)
{
	struct cairn_credentials *found = NULL;
	world->call.deadline = cairn_clock() + 20 * SECOND;
	int status = cairn_credentials_get(world->source, &world->call, &found);
	assert_int_equal(status, expected);
	if (!strstr(world->call.error.text, word))
		fail_msg("'%s' does not say '%s'", world->call.error.text, word);
	assert_null(strstr(world->call.error.text, "hush"));
}

static void test_credentials_of_the_environment(void **state)
{
	struct world *world = *state;
	set("AWS_ACCESS_KEY_ID", "A");
	expect_failure(world, CAIRN_INVALID, "AWS_SECRET_ACCESS_KEY");
	set("AWS_SECRET_ACCESS_KEY", "hush with a space");
	expect_failure(world, CAIRN_INVALID, "AWS_SECRET_ACCESS_KEY");
	set("AWS_SECRET_ACCESS_KEY", "hush");
	set("AWS_SESSION_TOKEN", "T");
	expect(world, "A", "hush", "T");
}

static void test_credentials_none(void **state)
{
	struct world *world = *state;
	expect_failure(world, CAIRN_ACCESS, "no credentials: set AWS_ACCESS_KEY_ID");
	set("AWS_PROFILE", "nobody");
	expect_failure(world, CAIRN_INVALID, "profile nobody is in neither");
}

static const char credentials_file[] = "# comment\n"
				       "[other]\n"
				       "aws_access_key_id = B\r\n"
				       "aws_secret_access_key=hushb\n"
				       "[ default ]\n"
				       "  nested = 1\n"
				       "aws_access_key_id =\tD \n"
				       "; aws_access_key_id = X\n"
				       "aws_secret_access_key = hush/d=\n"
				       "aws_session_token = Td\n"
				       "[last]\n"
				       "aws_access_key_id = L\n";

static void test_credentials_of_the_files(void **state)
{
	struct world *world = *state;
	write_file(world, ".aws/credentials", credentials_file);
	expect(world, "D", "hush/d=", "Td");
	set("AWS_PROFILE", "other");
	source_new(world, NULL);
	expect(world, "B", "hushb", "");
	source_new(world, "default");
	expect(world, "D", "hush/d=", "Td");
	source_new(world, "last");
	expect_failure(world, CAIRN_INVALID, "profile last");
	/* The environment goes before the files, but not before a profile that is named. */
	set("AWS_ACCESS_KEY_ID", "E");
	set("AWS_SECRET_ACCESS_KEY", "hushe");
	source_new(world, NULL);
	expect(world, "E", "hushe", "");
	source_new(world, "other");
	expect(world, "B", "hushb", "");
}

static void test_credentials_of_the_config_file(void **state)
{
	struct world *world = *state;
	write_file(world, "config",
		   "[default]\nregion = r1\n[profile p]\nregion = r2\n"
		   "aws_access_key_id = C\naws_secret_access_key = hushc\n"
		   "[p]\nregion = r3\n");
	set("AWS_CONFIG_FILE", "~/config");
	source_new(world, "p");
	expect(world, "C", "hushc", "");
	char *region = cairn_profile_setting("p", "region");
	assert_string_equal(region, "r2");
	free(region);
	region = cairn_profile_setting(NULL, "region");
	assert_string_equal(region, "r1");
	free(region);
	assert_null(cairn_profile_setting("p", "no"));
	assert_null(cairn_profile_setting("q", "region"));
}

static void test_credentials_of_a_process(void **state)
{
	struct world *world = *state;
	write_file(world, ".aws/config",
		   "[default]\n"
		   "credential_process = printf "
		   "'{\"Version\":1,\"AccessKeyId\":\"P\",\"SecretAccessKey\":\"hushp\","
		   "\"SessionToken\":\"Tp\",\"Expiration\":\"2099-01-01T00:00:00Z\"}'\n"
		   "[profile fails]\ncredential_process = echo hush; exit 3\n"
		   "[profile text]\ncredential_process = echo hush\n"
		   "[profile hangs]\ncredential_process = sleep 600\n");
	expect(world, "P", "hushp", "Tp");
	source_new(world, "fails");
	expect_failure(world, CAIRN_ACCESS, "exit 3");
	source_new(world, "text");
	expect_failure(world, CAIRN_INVALID, "no AccessKeyId");
	source_new(world, "hangs");
	struct cairn_credentials *found = NULL;
	world->call.deadline = cairn_clock() + SECOND / 5;
	assert_int_equal(cairn_credentials_get(world->source, &world->call, &found), CAIRN_TIMEOUT);
}

/* Until-close answers, so that no lengths need be counted. */
#define CLOSING "!HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"

static void test_credentials_of_a_web_identity(void **state)
{
	struct world *world = *state;
	static const char *const answers[] = {
		CLOSING "<AssumeRoleWithWebIdentityResponse xmlns='https://sts.amazonaws.com/doc/'>"
			"<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>W</AccessKeyId>"
			"<SecretAccessKey>hushw</SecretAccessKey><SessionToken>Tw</SessionToken>"
			"<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>"
			"</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>",
	};
	static const char *const wrong[] = { CLOSING "<html>hush" };
	static const char *const denied[] = {
		"!HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\nhush"
	};
	char path[200];
	(void)snprintf(path, sizeof(path), "%s/token", world->home);
	set("AWS_WEB_IDENTITY_TOKEN_FILE", path);
	set("AWS_ROLE_ARN", "arn:aws:iam::1:role/r");
	set("AWS_ENDPOINT_URL_STS", scripted_server_url(world->server));
	expect_failure(world, CAIRN_INVALID, path);
	write_file(world, "token", "jwt.a+b\n");
	scripted_server_say(world->server, wrong, 1);
	expect_failure(world, CAIRN_INVALID, "web identity");
	scripted_server_say(world->server, denied, 1);
	expect_failure(world, CAIRN_ACCESS, "403");
	scripted_server_say(world->server, answers, 1);

	expect(world, "W", "hushw", "Tw");
	expect(world, "W", "hushw", "Tw");

	assert_int_equal(scripted_server_count(world->server), 1);
	const char *body = strstr(scripted_server_request(world->server, 0), "\r\n\r\n") + 4;
	assert_string_equal(body, "Action=AssumeRoleWithWebIdentity&RoleArn=arn%3Aaws%3Aiam%3A%3A1"
				  "%3Arole%2Fr&RoleSessionName=cairnfs&Version=2011-06-15"
				  "&WebIdentityToken=jwt.a%2Bb");
}

#define KEYS(access, expiration)                                                                   \
	"{\"Code\":\"Success\",\"AccessKeyId\":\"" access "\",\"SecretAccessKey\":\"hushm\","      \
	"\"Token\":\"Tm\",\"Expiration\":\"" expiration "\"}"

static void test_credentials_of_a_container(void **state)
{
	struct world *world = *state;
	static const char *const answers[] = { CLOSING KEYS("M", "2099-01-01T00:00:00Z") };
	char url[100];
	(void)snprintf(url, sizeof(url), "%s/get", scripted_server_url(world->server));
	set("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.2.example.com/get");
	expect_failure(world, CAIRN_INVALID, "FULL_URI");
	set("AWS_CONTAINER_CREDENTIALS_FULL_URI", url);
	set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "Bearer hush");
	scripted_server_say(world->server, answers, 1);

	expect(world, "M", "hushm", "Tm");

	char *header = scripted_server_header(world->server, 0, "authorization");
	assert_string_equal(header, "Bearer hush");
	free(header);
}

static void test_credentials_of_an_instance(void **state)
{
	struct world *world = *state;
	static const char *const answers[] = {
		CLOSING "session-token",
		CLOSING "role-1\n",
		CLOSING KEYS("I", "2099-01-01T00:00:00Z"),
	};
	static const char *const without[] = { "!HTTP/1.1 404 No\r\nConnection: close\r\n\r\n" };
	set("AWS_EC2_METADATA_DISABLED", "false");
	set("AWS_EC2_METADATA_SERVICE_ENDPOINT", scripted_server_url(world->server));
	scripted_server_say(world->server, without, 1);
	expect_failure(world, CAIRN_ACCESS, "no credentials");
	scripted_server_say(world->server, answers, 3);

	expect(world, "I", "hushm", "Tm");

	assert_memory_equal(scripted_server_request(world->server, 0), "PUT /latest/api/token ",
			    22);
	char *token = scripted_server_header(world->server, 2, "x-aws-ec2-metadata-token");
	assert_string_equal(token, "session-token");
	free(token);
	assert_non_null(strstr(scripted_server_request(world->server, 2),
			       "GET /latest/meta-data/iam/security-credentials/role-1 "));
}

/* New ones come before the old ones end; while that fails, the old ones are used. */
static void test_credentials_are_refreshed(void **state)
{
	struct world *world = *state;
	static const char *const answers[] = {
		CLOSING KEYS("one", "2000-01-01T00:00:00Z"),
		CLOSING KEYS("two", "2099-01-01T00:00:00Z"),
		CLOSING KEYS("three", "2099-01-01T00:00:00Z"),
	};
	set("AWS_CONTAINER_CREDENTIALS_FULL_URI", scripted_server_url(world->server));
	scripted_server_say(world->server, answers, 3);
	expect(world, "one", "hushm", "Tm");
	expect(world, "two", "hushm", "Tm");
	expect(world, "two", "hushm", "Tm");
	assert_int_equal(scripted_server_count(world->server), 2);
	struct cairn_credentials *used = NULL;
	assert_int_equal(cairn_credentials_get(world->source, &world->call, &used), 0);

	assert_true(cairn_credentials_renew(world->source, &world->call, used));
	expect(world, "three", "hushm", "Tm");
	/* Another thread that was refused with the old ones asks nobody. */
	assert_true(cairn_credentials_renew(world->source, &world->call, used));
	assert_int_equal(scripted_server_count(world->server), 3);
	cairn_credentials_unref(used);
	assert_int_equal(cairn_credentials_get(world->source, &world->call, &used), 0);
	assert_false(cairn_credentials_renew(world->source, &world->call, used));
	cairn_credentials_unref(used);
}

static void test_credentials_soon_over_are_used(void **state)
{
	struct world *world = *state;
	char soon[32], first[512];
	time_t then = time(NULL) + 60;
	struct tm parts;
	(void)gmtime_r(&then, &parts);
	assert_true(strftime(soon, sizeof(soon), "%Y-%m-%dT%H:%M:%SZ", &parts) > 0);
	(void)snprintf(first, sizeof(first),
		       CLOSING "{\"AccessKeyId\":\"soon\",\"SecretAccessKey\":\"S\","
			       "\"Expiration\":\"%s\"}",
		       soon);
	const char *const answers[] = { first, "!HTTP/1.1 500 No\r\nConnection: close\r\n\r\n" };
	set("AWS_CONTAINER_CREDENTIALS_FULL_URI", scripted_server_url(world->server));
	scripted_server_say(world->server, answers, 2);

	expect(world, "soon", "S", "");
	expect(world, "soon", "S", "");

	assert_int_equal(scripted_server_count(world->server), 2);
	scripted_server_say(world->server, NULL, 0);
}

/* A key that changes in the file is found when the old one is refused. */
static void test_credentials_change_in_the_file(void **state)
{
	struct world *world = *state;
	write_file(world, ".aws/credentials",
		   "[default]\naws_access_key_id = old\naws_secret_access_key = S\n");
	struct cairn_credentials *used = NULL;
	assert_int_equal(cairn_credentials_get(world->source, &world->call, &used), 0);
	assert_false(cairn_credentials_renew(world->source, &world->call, used));
	write_file(world, ".aws/credentials",
		   "[default]\naws_access_key_id = new\naws_secret_access_key = S\n");

	assert_true(cairn_credentials_renew(world->source, &world->call, used));

	expect(world, "new", "S", "");
	cairn_credentials_unref(used);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_credentials_of_the_environment),
		TEST(test_credentials_none),
		TEST(test_credentials_of_the_files),
		TEST(test_credentials_of_the_config_file),
		TEST(test_credentials_of_a_process),
		TEST(test_credentials_of_a_web_identity),
		TEST(test_credentials_of_a_container),
		TEST(test_credentials_of_an_instance),
		TEST(test_credentials_are_refreshed),
		TEST(test_credentials_soon_over_are_used),
		TEST(test_credentials_change_in_the_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
