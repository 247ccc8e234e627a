/* SPDX-License-Identifier: MIT */
#include "storage/credentials_private.h"

#include <sys/types.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include "storage/store_private.h"

/* The shared files ~/.aws/credentials and ~/.aws/config, and the program that they may name. */

#define FILE_MAX   ((size_t)1024 * 1024)
#define OUTPUT_MAX ((size_t)64 * 1024)

/* The section of a profile in one of the files. The file's bytes are in `text`. */
struct section {
	struct cairn_buffer text;
	struct cairn_slice body; /* the lines behind the section's head */
	bool found;
};

/* `variable`, or ~/.aws/NAME. False: there is no home to look in. */
static bool file_path(const char *variable, const char *name, char *path, size_t size)
{
	const char *given = cairn_environment(variable);
	const char *home = cairn_environment("HOME");
	int length = -1;
	if (given && strncmp(given, "~/", 2) != 0)
		length = snprintf(path, size, "%s", given);
	else if (home && given)
		length = snprintf(path, size, "%s/%s", home, given + 2);
	else if (home)
		length = snprintf(path, size, "%s/.aws/%s", home, name);
	return length > 0 && (size_t)length < size;
}

static struct cairn_slice trimmed(const char *begin, const char *end)
{
	while (begin < end && (*begin == ' ' || *begin == '\t' || *begin == '\r'))
		begin++;
	while (end > begin && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
		end--;
	return (struct cairn_slice){ begin, (size_t)(end - begin) };
}

/* Cut the next line off `text`. */
static struct cairn_slice next_line(struct cairn_slice *text)
{
	const char *end = memchr(text->data, '\n', text->size);
	struct cairn_slice line = { text->data, end ? (size_t)(end - text->data) : text->size };
	size_t taken = line.size + (end ? 1 : 0);
	text->data += taken;
	text->size -= taken;
	return line;
}

/* Does the line open the section of `profile`? The config file writes [profile NAME]. */
static bool opens(struct cairn_slice line, const char *profile, bool config)
{
	line = trimmed(line.data, line.data + line.size);
	if (line.size < 2 || line.data[0] != '[' || line.data[line.size - 1] != ']')
		return false;
	struct cairn_slice name = trimmed(line.data + 1, line.data + line.size - 1);
	bool long_form = name.size > 8 && memcmp(name.data, "profile", 7) == 0 &&
			 (name.data[7] == ' ' || name.data[7] == '\t');
	if (config && long_form)
		name = trimmed(name.data + 8, name.data + name.size);
	else if (config && strcmp(profile, "default") != 0)
		return false;
	return cairn_slice_equal(name, cairn_slice_of(profile));
}

static int section_read(struct section *section, const char *profile, bool config)
{
	char path[4096];
	*section = (struct section){ 0 };
	cairn_buffer_init(&section->text, FILE_MAX);
	if (!file_path(config ? "AWS_CONFIG_FILE" : "AWS_SHARED_CREDENTIALS_FILE",
		       config ? "config" : "credentials", path, sizeof(path)))
		return CAIRN_NOT_FOUND;
	int status = cairn_secret_read(path, &section->text);
	if (status)
		return status;
	struct cairn_slice rest = cairn_buffer_slice(&section->text);
	while (rest.size && !section->found)
		section->found = opens(next_line(&rest), profile, config);
	section->body = rest;
	return section->found ? CAIRN_OK : CAIRN_NOT_FOUND;
}

static bool section_value(const struct section *section, const char *name,
			  struct cairn_slice *ret_value)
{
	struct cairn_slice rest = section->body;
	bool found = false;
	while (section->found && rest.size) {
		struct cairn_slice line = next_line(&rest);
		if (line.size && line.data[0] == '[')
			break;
		/* Indented lines belong to a setting with parts of its own, such as s3. */
		const char *equals = line.size && line.data[0] != ' ' && line.data[0] != '\t' &&
						     line.data[0] != '#' && line.data[0] != ';'
					     ? memchr(line.data, '=', line.size)
					     : NULL;
		if (!equals || !cairn_slice_equal(trimmed(line.data, equals), cairn_slice_of(name)))
			continue;
		*ret_value = trimmed(equals + 1, line.data + line.size);
		found = true;
	}
	return found;
}

char *cairn_profile_setting(const char *profile, const char *name)
{
	const char *named = profile ? profile : cairn_environment("AWS_PROFILE");
	struct section section;
	struct cairn_slice value = { 0 };
	char *copy = NULL;
	if (!section_read(&section, named ? named : "default", true) &&
	    section_value(&section, name, &value) && value.size)
		copy = strndup(value.data, value.size);
	cairn_secret_release(&section.text);
	return copy;
}

static int refuse_file(struct cairn_call *call, int status, bool config)
{
	return cairn_error_set(&call->error, status, "the AWS %s file cannot be read: %s",
			       config ? "config" : "credentials", cairn_status_name(status));
}

/* The keys that lie in a section as they are. */
static int from_section(struct cairn_credential_source *source, struct cairn_call *call,
			struct cairn_credentials *credentials, bool config)
{
	struct section section;
	struct cairn_slice access, secret, token = { 0 };
	const char *profile = cairn_profile_name(source);
	int status = section_read(&section, profile, config);
	if (status && status != CAIRN_NOT_FOUND)
		status = refuse_file(call, status, config);
	if (!status && !section_value(&section, "aws_access_key_id", &access))
		status = CAIRN_NOT_FOUND;
	if (!status && !section_value(&section, "aws_secret_access_key", &secret))
		status = cairn_error_set(&call->error, CAIRN_INVALID,
					 "profile %s has an aws_access_key_id without an "
					 "aws_secret_access_key",
					 profile);
	if (!status) {
		(void)section_value(&section, "aws_session_token", &token);
		if (cairn_credentials_set(credentials->access_key, sizeof(credentials->access_key),
					  access) ||
		    cairn_credentials_set(credentials->secret_key, sizeof(credentials->secret_key),
					  secret) ||
		    cairn_credentials_set(credentials->token, sizeof(credentials->token), token))
			status = cairn_error_set(&call->error, CAIRN_INVALID,
						 "profile %s: a key holds what no key does",
						 profile);
	}
	cairn_secret_release(&section.text);
	return status;
}

int cairn_credentials_from_files(struct cairn_credential_source *source, struct cairn_call *call,
				 struct cairn_credentials *credentials)
{
	return from_section(source, call, credentials, false);
}

/* The config file's own keys; at last, a profile that was named must be somewhere. */
int cairn_credentials_from_config(struct cairn_credential_source *source, struct cairn_call *call,
				  struct cairn_credentials *credentials)
{
	int status = from_section(source, call, credentials, true);
	if (status != CAIRN_NOT_FOUND || (!source->profile && !cairn_environment("AWS_PROFILE")))
		return status;
	struct section section;
	bool known = false;
	for (int config = 0; config <= 1; config++) {
		known = known || !section_read(&section, cairn_profile_name(source), config);
		cairn_secret_release(&section.text);
	}
	if (known)
		return CAIRN_NOT_FOUND;
	return cairn_error_set(&call->error, CAIRN_INVALID,
			       "profile %s is in neither the AWS credentials nor the config file",
			       cairn_profile_name(source));
}

/* Read what the process writes, until it closes its end or the call is over. */
static int read_output(int fd, struct cairn_call *call, struct cairn_buffer *output)
{
	for (;;) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		int status = cairn_call_check(call, "credential_process");
		if (status)
			return status;
		if (poll(&wait, 1, 20) <= 0)
			continue;
		ssize_t got = read(fd, output->data + output->size, OUTPUT_MAX - output->size);
		if (got == 0)
			return CAIRN_OK;
		if (got < 0)
			return cairn_error_set(&call->error, CAIRN_IO,
					       "credential_process: its output cannot be read");
		output->size += (size_t)got;
		output->data[output->size] = '\0';
		if (output->size == OUTPUT_MAX)
			return cairn_error_set(&call->error, CAIRN_INVALID,
					       "credential_process: its output is too long");
	}
}

/* Start `command` in a process group of its own, its output in the pipe. */
static int start(const char *command, int output, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	char *const arguments[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char *)command, NULL };
	sigset_t none, pipe;
	(void)sigemptyset(&none);
	(void)sigemptyset(&pipe);
	(void)sigaddset(&pipe, SIGPIPE);
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	(void)posix_spawn_file_actions_adddup2(&actions, output, 1);
	(void)posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	(void)posix_spawnattr_init(&attributes);
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
							    POSIX_SPAWN_SETSIGDEF);
	(void)posix_spawnattr_setsigmask(&attributes, &none);
	(void)posix_spawnattr_setsigdefault(&attributes, &pipe);
	int failed = posix_spawn(ret_pid, "/bin/sh", &actions, &attributes, arguments, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)posix_spawnattr_destroy(&attributes);
	return failed ? CAIRN_IO : CAIRN_OK;
}

static int run(const char *command, struct cairn_call *call, struct cairn_buffer *output)
{
	int ends[2];
	pid_t pid;
	if (pipe2(ends, O_CLOEXEC))
		return cairn_error_set(&call->error, CAIRN_IO, "credential_process: no pipe");
	int status = start(command, ends[1], &pid);
	(void)close(ends[1]);
	if (status) {
		(void)close(ends[0]);
		return cairn_error_set(&call->error, CAIRN_IO,
				       "credential_process: /bin/sh cannot be run");
	}
	status = read_output(ends[0], call, output);
	(void)close(ends[0]);
	if (status)
		(void)kill(-pid, SIGKILL);
	int how = 0;
	while (waitpid(pid, &how, 0) < 0 && errno == EINTR)
		continue;
	if (!status && (!WIFEXITED(how) || WEXITSTATUS(how)))
		status = cairn_error_set(&call->error, CAIRN_ACCESS,
					 "credential_process of the profile failed (%s %d)",
					 WIFEXITED(how) ? "exit" : "signal",
					 WIFEXITED(how) ? WEXITSTATUS(how) : WTERMSIG(how));
	return status;
}

int cairn_credentials_from_process(struct cairn_credential_source *source, struct cairn_call *call,
				   struct cairn_credentials *credentials)
{
	char *command = cairn_profile_setting(cairn_profile_name(source), "credential_process");
	if (!command)
		return CAIRN_NOT_FOUND;
	struct cairn_buffer output;
	cairn_buffer_init(&output, OUTPUT_MAX);
	int status = cairn_buffer_reserve(&output, OUTPUT_MAX);
	if (!status)
		status = run(command, call, &output);
	else
		status = cairn_call_no_memory(call, "credential_process");
	if (!status)
		status = cairn_credentials_from_json(cairn_buffer_slice(&output), "SessionToken",
						     "credential_process", call, credentials);
	cairn_secret_release(&output);
	free(command);
	return status;
}
