/* SPDX-License-Identifier: MIT */
#include "storage/credentials_private.h"

#include <cairn/json.h>

#include "storage/sigv4.h"
#include "storage/store_private.h"
#include "storage/xml.h"

/* Services that give credentials: the token service, a container's, EC2's metadata. */

#define ANSWER_MAX ((size_t)256 * 1024)
#define TOKEN_MAX  ((size_t)64 * 1024)

/* What is not there at all (no EC2 machine) does not answer; the SDKs wait so long. */
#define INSTANCE_PATIENCE ((int64_t)1000 * 1000)

static void response_wipe(struct cairn_http_response *response)
{
	if (response->body.data)
		explicit_bzero(response->body.data, response->body.capacity);
	cairn_http_response_release(response);
}

/* Ask, and insist on a 200. */
static int ask(struct cairn_http *http, struct cairn_call *call,
	       const struct cairn_http_request *request, struct cairn_http_response *response)
{
	int status = cairn_http_perform(http, call, request, response);
	if (status || response->status == 200)
		return status;
	/* A fault of the service passes; what else it says, it says for good. */
	return cairn_error_set(&call->error, response->status >= 500 ? CAIRN_TIMEOUT : CAIRN_ACCESS,
			       "%s: the service answered %d", request->what, response->status);
}

static bool ends_with(const char *text, const char *end)
{
	size_t size = strlen(text), tail = strlen(end);
	return size >= tail && strcmp(text + size - tail, end) == 0;
}

static int read_assumed(void *context, const char *path, struct cairn_slice text)
{
	struct cairn_credentials *credentials = context;
	if (ends_with(path, "/Credentials/AccessKeyId"))
		return cairn_credentials_set(credentials->access_key,
					     sizeof(credentials->access_key), text);
	if (ends_with(path, "/Credentials/SecretAccessKey"))
		return cairn_credentials_set(credentials->secret_key,
					     sizeof(credentials->secret_key), text);
	if (ends_with(path, "/Credentials/SessionToken"))
		return cairn_credentials_set(credentials->token, sizeof(credentials->token), text);
	if (ends_with(path, "/Credentials/Expiration"))
		return cairn_credentials_set_expiry(text, credentials);
	return CAIRN_OK;
}

static int assume(struct cairn_credential_source *source, struct cairn_call *call, const char *body,
		  struct cairn_credentials *credentials)
{
	static const char what[] = "credentials by web identity";
	static const struct cairn_header type = { "content-type",
						  "application/x-www-form-urlencoded" };
	const char *endpoint = cairn_environment("AWS_ENDPOINT_URL_STS");
	char url[1024];
	(void)snprintf(url, sizeof(url), endpoint ? "%s" : "https://sts.%s.amazonaws.com/",
		       endpoint ? endpoint : source->region);
	const struct cairn_http_request request = {
		.what = what,
		.method = "POST",
		.url = url,
		.headers = &type,
		.header_count = 1,
		.body = cairn_slice_of(body),
		.max_body = ANSWER_MAX,
	};
	const struct cairn_xml_handler handler = { .end = read_assumed, .context = credentials };
	struct cairn_http_response response;
	cairn_http_response_init(&response);
	int status = ask(source->http, call, &request, &response);
	if (!status && (cairn_xml_read(cairn_buffer_slice(&response.body), &handler, NULL) ||
			!*credentials->access_key || !*credentials->secret_key))
		status = cairn_error_set(&call->error, CAIRN_INVALID,
					 "%s: the service's answer holds no credentials", what);
	response_wipe(&response);
	return status;
}

int cairn_credentials_from_web_identity(struct cairn_credential_source *source,
					struct cairn_call *call,
					struct cairn_credentials *credentials)
{
	const char *path = cairn_environment("AWS_WEB_IDENTITY_TOKEN_FILE");
	const char *role = cairn_environment("AWS_ROLE_ARN");
	const char *session = cairn_environment("AWS_ROLE_SESSION_NAME");
	if (source->profile || !path || !role)
		return CAIRN_NOT_FOUND;
	struct cairn_buffer token, body;
	cairn_buffer_init(&token, TOKEN_MAX);
	cairn_buffer_init(&body, 4 * TOKEN_MAX);
	int status = cairn_secret_read(path, &token);
	if (status) {
		status = cairn_error_set(&call->error, CAIRN_INVALID,
					 "AWS_WEB_IDENTITY_TOKEN_FILE %s cannot be read: %s", path,
					 cairn_status_name(status));
	} else {
		while (token.size && strchr("\r\n \t", token.data[token.size - 1]))
			token.data[--token.size] = '\0';
		const struct cairn_header parameters[] = {
			{ "Action", "AssumeRoleWithWebIdentity" },
			{ "Version", "2011-06-15" },
			{ "RoleArn", role },
			{ "RoleSessionName", session ? session : "cairnfs" },
			{ "WebIdentityToken", token.data },
		};
		if (cairn_buffer_reserve(&body, 4 * TOKEN_MAX) ||
		    cairn_sigv4_query(parameters, 5, &body))
			status = cairn_call_no_memory(call, path);
	}
	if (!status)
		status = assume(source, call, body.data, credentials);
	cairn_secret_release(&token);
	cairn_secret_release(&body);
	return status;
}

/* Where a container's credentials may be asked for in the clear: not beyond this machine. */
static bool is_near(const char *url)
{
	static const char *const hosts[] = { "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]",
					     "127.0.0.1",     "localhost",	"[::1]" };
	if (strncmp(url, "https://", 8) == 0)
		return true;
	if (strncmp(url, "http://", 7) != 0)
		return false;
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		size_t size = strlen(hosts[i]);
		if (strncmp(url + 7, hosts[i], size) == 0 && strchr("/:", url[7 + size]))
			return true;
	}
	return false;
}

/* The header that a container's endpoint wants, from a variable or the file that one names. */
static int read_authorization(struct cairn_call *call, struct cairn_buffer *token)
{
	const char *file = cairn_environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
	const char *text = cairn_environment("AWS_CONTAINER_AUTHORIZATION_TOKEN");
	int status = CAIRN_OK;
	if (file)
		status = cairn_secret_read(file, token);
	else if (text)
		status = cairn_buffer_append(token, text, strlen(text));
	while (token->size && strchr("\r\n \t", token->data[token->size - 1]))
		token->data[--token->size] = '\0';
	if (!status && token->size && strpbrk(token->data, "\r\n"))
		status = CAIRN_INVALID;
	if (status)
		return cairn_error_set(&call->error, CAIRN_INVALID,
				       "the container's authorization token cannot be read: %s",
				       cairn_status_name(status));
	return CAIRN_OK;
}

int cairn_credentials_from_container(struct cairn_credential_source *source,
				     struct cairn_call *call, struct cairn_credentials *credentials)
{
	static const char what[] = "credentials of the container";
	const char *relative = cairn_environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
	const char *full = cairn_environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
	char url[2048];
	if (!relative && !full)
		return CAIRN_NOT_FOUND;
	(void)snprintf(url, sizeof(url), "%s%s", relative ? "http://169.254.170.2" : "",
		       relative ? relative : full);
	if (!is_near(url))
		return cairn_error_set(&call->error, CAIRN_INVALID,
				       "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor of "
				       "this machine");
	struct cairn_buffer token;
	cairn_buffer_init(&token, TOKEN_MAX);
	int status = read_authorization(call, &token);
	struct cairn_header header = { "authorization", token.data };
	const struct cairn_http_request request = {
		.what = what,
		.method = "GET",
		.url = url,
		.headers = &header,
		.header_count = token.size ? 1 : 0,
		.max_body = ANSWER_MAX,
	};
	struct cairn_http_response response;
	cairn_http_response_init(&response);
	if (!status)
		status = ask(source->direct, call, &request, &response);
	if (!status)
		status = cairn_credentials_from_json(cairn_buffer_slice(&response.body), "Token",
						     what, call, credentials);
	response_wipe(&response);
	cairn_secret_release(&token);
	return status;
}

/* One question to the metadata service, with the session's token. */
static int ask_instance(struct cairn_credential_source *source, struct cairn_call *call,
			const char *path, const struct cairn_header *header, const char *method,
			struct cairn_http_response *response)
{
	const char *endpoint = cairn_environment("AWS_EC2_METADATA_SERVICE_ENDPOINT");
	char url[2048];
	if (!endpoint)
		endpoint = "http://169.254.169.254";
	(void)snprintf(url, sizeof(url), "%s%s%s", endpoint, ends_with(endpoint, "/") ? "" : "/",
		       path);
	const struct cairn_http_request request = {
		.what = "credentials of the EC2 instance",
		.method = method,
		.url = url,
		.headers = header,
		.header_count = 1,
		.max_body = ANSWER_MAX,
	};
	return ask(source->direct, call, &request, response);
}

int cairn_credentials_from_instance(struct cairn_credential_source *source, struct cairn_call *call,
				    struct cairn_credentials *credentials)
{
	static const char list[] = "latest/meta-data/iam/security-credentials/";
	static const struct cairn_header lifetime = { "x-aws-ec2-metadata-token-ttl-seconds",
						      "21600" };
	const char *disabled = cairn_environment("AWS_EC2_METADATA_DISABLED");
	if (disabled && strcasecmp(disabled, "true") == 0)
		return CAIRN_NOT_FOUND;
	struct cairn_http_response session, answer;
	cairn_http_response_init(&session);
	cairn_http_response_init(&answer);
	int64_t deadline = call->deadline;
	int64_t patience = cairn_clock() + INSTANCE_PATIENCE;
	if (!deadline || patience < deadline)
		call->deadline = patience;
	int status = ask_instance(source, call, "latest/api/token", &lifetime, "PUT", &session);
	call->deadline = deadline;
	struct cairn_header token = { "x-aws-ec2-metadata-token", session.body.data };
	if (status || !session.body.size || strpbrk(session.body.data, "\r\n")) {
		/* No metadata service: no EC2 machine. */
		status = status == CAIRN_CANCELLED ? status : CAIRN_NOT_FOUND;
		goto out;
	}
	status = ask_instance(source, call, list, &token, "GET", &answer);
	if (status)
		goto out;
	/* The first line is the role's name. */
	char path[512];
	size_t name = answer.body.size ? strcspn(answer.body.data, "\r\n") : 0;
	(void)snprintf(path, sizeof(path), "%s%.*s", list, (int)(name < 256 ? name : 0),
		       name ? answer.body.data : "");
	if (!name) {
		status = CAIRN_NOT_FOUND;
		goto out;
	}
	status = ask_instance(source, call, path, &token, "GET", &answer);
	if (!status)
		status = cairn_credentials_from_json(cairn_buffer_slice(&answer.body), "Token",
						     "credentials of the EC2 instance", call,
						     credentials);
out:
	response_wipe(&session);
	response_wipe(&answer);
	return status;
}
