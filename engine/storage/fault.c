/* SPDX-License-Identifier: MIT */
#include "storage/store_private.h"

#include <pthread.h>

struct fault_rule {
	struct fault_rule *next;
	struct cairn_fault_rule rule; /* key_prefix is owned */
	char *prefix;
	unsigned seen; /* matching calls so far */
	unsigned hits;
};

struct fault_store {
	struct cairn_store store;
	pthread_mutex_t lock;
	struct fault_rule *rules; /* under lock, as what follows */
	uint64_t random;
};

static struct fault_store *fault_of(struct cairn_store *store)
{
	return (struct fault_store *)store;
}

/* xorshift64*: what a seed brings is the same on every machine. */
static unsigned draw_permille(struct fault_store *fault)
{
	fault->random ^= fault->random >> 12;
	fault->random ^= fault->random << 25;
	fault->random ^= fault->random >> 27;
	return (unsigned)((fault->random * 0x2545f4914f6cdd1dULL) >> 33) % 1000;
}

static bool rule_hits(struct fault_store *fault, struct fault_rule *entry,
		      enum cairn_operation operation, const char *key)
{
	const struct cairn_fault_rule *rule = &entry->rule;
	if (rule->operations && !(rule->operations & 1u << operation))
		return false;
	if (entry->prefix && strncmp(key, entry->prefix, strlen(entry->prefix)) != 0)
		return false;
	if (entry->seen++ < rule->skip)
		return false;
	if (rule->times && entry->hits >= rule->times)
		return false;
	if (rule->permille && draw_permille(fault) >= rule->permille)
		return false;
	entry->hits++;
	return true;
}

/* The rule for this call; one that does nothing where none hits. */
static struct cairn_fault_rule choose(struct cairn_store *store, enum cairn_operation operation,
				      const char *key)
{
	struct fault_store *fault = fault_of(store);
	struct cairn_fault_rule chosen = { .act = true };
	(void)pthread_mutex_lock(&fault->lock);
	for (struct fault_rule *entry = fault->rules; entry; entry = entry->next) {
		if (rule_hits(fault, entry, operation, key)) {
			chosen = entry->rule;
			break;
		}
	}
	(void)pthread_mutex_unlock(&fault->lock);
	return chosen;
}

static int answer(struct cairn_call *call, const struct cairn_fault_rule *rule, const char *key)
{
	return cairn_error_set(&call->error, rule->status, "%s: injected fault: %s", key,
			       cairn_status_name(rule->status));
}

/* Before the act. 0: it happens. Anything else is the answer. */
static int before(struct cairn_call *call, const struct cairn_fault_rule *rule, const char *key)
{
	if (rule->delay_before) {
		int status = cairn_call_sleep(call, cairn_clock() + rule->delay_before);
		if (status)
			return status;
	}
	return rule->status && !rule->act ? answer(call, rule, key) : CAIRN_OK;
}

/* After the act, which answered `status`. `writes`: a late answer leaves its outcome unknown. */
static int after(struct cairn_call *call, const struct cairn_fault_rule *rule, const char *key,
		 int status, bool writes)
{
	if (rule->delay_after) {
		struct cairn_error error = call->error;
		int late = cairn_call_sleep(call, cairn_clock() + rule->delay_after);
		if (late == CAIRN_TIMEOUT && writes)
			return cairn_error_set(&call->error, CAIRN_UNKNOWN,
					       "%s: injected fault: no answer within the deadline",
					       key);
		if (late)
			return late;
		call->error = error;
	}
	return rule->status ? answer(call, rule, key) : status;
}

static int fault_get(struct cairn_store *store, struct cairn_call *call, const char *key,
		     const struct cairn_get_options *options, struct cairn_object *ret_object)
{
	struct cairn_fault_rule rule = choose(store, CAIRN_OPERATION_GET, key);
	int status = before(call, &rule, key);
	if (status)
		return status;
	status = cairn_store_get(store->below, call, key, options, ret_object);
	return after(call, &rule, key, status, false);
}

static int fault_put(struct cairn_store *store, struct cairn_call *call, const char *key,
		     struct cairn_slice data, const struct cairn_put_options *options,
		     struct cairn_version *ret_version)
{
	struct cairn_fault_rule rule = choose(store, CAIRN_OPERATION_PUT, key);
	int status = before(call, &rule, key);
	if (status)
		return status;
	status = cairn_store_put(store->below, call, key, data, options, ret_version);
	return after(call, &rule, key, status, true);
}

static int fault_remove(struct cairn_store *store, struct cairn_call *call, const char *key,
			const struct cairn_delete_options *options)
{
	struct cairn_fault_rule rule = choose(store, CAIRN_OPERATION_DELETE, key);
	int status = before(call, &rule, key);
	if (status)
		return status;
	status = cairn_store_delete(store->below, call, key, options);
	return after(call, &rule, key, status, true);
}

static int fault_list(struct cairn_store *store, struct cairn_call *call, const char *prefix,
		      const struct cairn_list_options *options, struct cairn_listing *ret_listing)
{
	struct cairn_fault_rule rule = choose(store, CAIRN_OPERATION_LIST, prefix);
	int status = before(call, &rule, prefix);
	if (status)
		return status;
	status = cairn_store_list(store->below, call, prefix, options, ret_listing);
	return after(call, &rule, prefix, status, false);
}

static int fault_prefix_exists(struct cairn_store *store, struct cairn_call *call,
			       const char *prefix)
{
	struct cairn_fault_rule rule = choose(store, CAIRN_OPERATION_PREFIX, prefix);
	int status = before(call, &rule, prefix);
	if (status)
		return status;
	status = cairn_store_prefix_exists(store->below, call, prefix);
	return after(call, &rule, prefix, status, false);
}

static int fault_prefix_make(struct cairn_store *store, struct cairn_call *call, const char *prefix)
{
	struct cairn_fault_rule rule = choose(store, CAIRN_OPERATION_PREFIX, prefix);
	int status = before(call, &rule, prefix);
	if (status)
		return status;
	status = cairn_store_prefix_make(store->below, call, prefix);
	return after(call, &rule, prefix, status, true);
}

static int fault_prefix_remove(struct cairn_store *store, struct cairn_call *call,
			       const char *prefix)
{
	struct cairn_fault_rule rule = choose(store, CAIRN_OPERATION_PREFIX, prefix);
	int status = before(call, &rule, prefix);
	if (status)
		return status;
	status = cairn_store_prefix_remove(store->below, call, prefix);
	return after(call, &rule, prefix, status, true);
}

static int fault_space(struct cairn_store *store, struct cairn_call *call,
		       struct cairn_space *ret_space)
{
	return cairn_store_space(store->below, call, ret_space);
}

static void forget_rules(struct fault_store *fault)
{
	while (fault->rules) {
		struct fault_rule *entry = fault->rules;
		fault->rules = entry->next;
		free(entry->prefix);
		free(entry);
	}
}

static void fault_free(struct cairn_store *store)
{
	struct fault_store *fault = fault_of(store);
	forget_rules(fault);
	(void)pthread_mutex_destroy(&fault->lock);
	free(fault);
}

static const struct cairn_store_ops fault_ops = {
	.get = fault_get,
	.put = fault_put,
	.remove = fault_remove,
	.list = fault_list,
	.prefix_exists = fault_prefix_exists,
	.prefix_make = fault_prefix_make,
	.prefix_remove = fault_prefix_remove,
	.space = fault_space,
	.free = fault_free,
};

int cairn_fault_store_new(struct cairn_store *below, uint64_t seed, struct cairn_store **ret_store)
{
	struct fault_store *fault = calloc(1, sizeof(*fault));
	if (!fault)
		return CAIRN_NO_MEMORY;
	cairn_store_stack(&fault->store, &fault_ops, below);
	/* Never 0, which the generator would keep for ever. */
	fault->random = (seed ^ 0x9e3779b97f4a7c15ULL) | 1;
	(void)pthread_mutex_init(&fault->lock, NULL);
	*ret_store = &fault->store;
	return CAIRN_OK;
}

int cairn_fault_rule_add(struct cairn_store *store, const struct cairn_fault_rule *rule)
{
	struct fault_store *fault = fault_of(store);
	if (!rule) {
		(void)pthread_mutex_lock(&fault->lock);
		forget_rules(fault);
		(void)pthread_mutex_unlock(&fault->lock);
		return CAIRN_OK;
	}
	struct fault_rule *entry = calloc(1, sizeof(*entry));
	if (!entry)
		return CAIRN_NO_MEMORY;
	entry->rule = *rule;
	entry->rule.key_prefix = NULL;
	if (rule->key_prefix) {
		entry->prefix = strdup(rule->key_prefix);
		if (!entry->prefix) {
			free(entry);
			return CAIRN_NO_MEMORY;
		}
	}
	(void)pthread_mutex_lock(&fault->lock);
	struct fault_rule **end = &fault->rules;
	while (*end)
		end = &(*end)->next;
	*end = entry;
	(void)pthread_mutex_unlock(&fault->lock);
	return CAIRN_OK;
}
