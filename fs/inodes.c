/* SPDX-License-Identifier: MIT */
#include "inodes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "filesystem.h"

/* Contents kept for opens to come; one that is larger is kept alone. */
#define KEPT_MAX ((size_t)8 << 20)

struct inodes {
	pthread_mutex_t mutex; /* guards everything below and the nodes' own fields */
	struct node **by_id, **by_identity;
	size_t buckets; /* a power of two */
	size_t count;
	uint64_t next_id;
	struct node *root;
	struct node *newest, *oldest;
	size_t kept;
};

static uint64_t hash_bytes(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t hash_mix(uint64_t hash)
{
	hash ^= hash >> 32;
	hash *= UINT64_C(0x9fb21c651e98df25);
	return hash ^ hash >> 28;
}

uint64_t inode_number(enum view view, const char *key)
{
	uint64_t number = hash_mix(hash_bytes(UINT64_C(0xcbf29ce484222325) ^ (uint64_t)view, key));
	return number > FUSE_ROOT_ID ? number : number + 2;
}

static uint64_t identity(enum node_type type, enum view view, const char *key, const char *etag)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ ((uint64_t)type << 8) ^ (uint64_t)view;
	return hash_mix(hash_bytes(hash_bytes(hash, key) * 31, etag));
}

static struct node *node_new(enum node_type type, enum view view, const char *key, const char *etag)
{
	size_t key_size = strlen(key) + 1, etag_size = strlen(etag) + 1;
	struct node *node = calloc(1, sizeof(*node) + key_size + etag_size);
	if (!node)
		return NULL;
	memcpy(node->key, key, key_size);
	memcpy(node->key + key_size, etag, etag_size);
	node->etag = node->key + key_size;
	node->type = type;
	node->view = view;
	node->inode = inode_number(view, key);
	return node;
}

static bool shared(enum node_type type)
{
	return type != NODE_WRITING;
}

static void link_node(struct inodes *inodes, struct node *node)
{
	struct node **slot = &inodes->by_id[node->id & (inodes->buckets - 1)];
	node->next_by_id = *slot;
	*slot = node;
	if (!shared(node->type))
		return;
	uint64_t hash = identity(node->type, node->view, node->key, node->etag);
	slot = &inodes->by_identity[hash & (inodes->buckets - 1)];
	node->next_by_identity = *slot;
	*slot = node;
}

static bool grow(struct inodes *inodes)
{
	size_t before = inodes->buckets, after = before ? before * 2 : 256;
	struct node **by_id = calloc(after, sizeof(*by_id));
	struct node **by_identity = calloc(after, sizeof(*by_identity));
	if (!by_id || !by_identity) {
		free(by_id);
		free(by_identity);
		return false;
	}
	struct node **old = inodes->by_id;
	free(inodes->by_identity);
	inodes->by_id = by_id;
	inodes->by_identity = by_identity;
	inodes->buckets = after;
	for (size_t i = 0; i < before; i++)
		for (struct node *node = old[i], *next; node; node = next) {
			next = node->next_by_id;
			link_node(inodes, node);
		}
	free(old);
	return true;
}

static void unlink_from(struct node **slot, struct node *node, bool by_id)
{
	while (*slot != node)
		slot = by_id ? &(*slot)->next_by_id : &(*slot)->next_by_identity;
	*slot = by_id ? node->next_by_id : node->next_by_identity;
}

/* Drop the node's content; returns it, to be unreferenced outside the lock. */
static struct content *drop_content(struct inodes *inodes, struct node *node)
{
	struct content *content = node->content;
	if (!content)
		return NULL;
	*(node->newer ? &node->newer->older : &inodes->newest) = node->older;
	*(node->older ? &node->older->newer : &inodes->oldest) = node->newer;
	node->newer = node->older = NULL;
	node->content = NULL;
	inodes->kept -= content->bytes.size;
	return content;
}

static void free_if_unused(struct inodes *inodes, struct node *node)
{
	if (node->lookups || node->pins || node == inodes->root)
		return;
	size_t mask = inodes->buckets - 1;
	unlink_from(&inodes->by_id[node->id & mask], node, true);
	if (shared(node->type)) {
		uint64_t hash = identity(node->type, node->view, node->key, node->etag);
		unlink_from(&inodes->by_identity[hash & mask], node, false);
	}
	inodes->count--;
	content_unref(drop_content(inodes, node));
	staging_forget(node->staging);
	free(node);
}

static struct node *add(struct inodes *inodes, struct node *node)
{
	if (inodes->count >= inodes->buckets && !grow(inodes))
		return NULL;
	node->id = inodes->next_id++;
	inodes->count++;
	link_node(inodes, node);
	return node;
}

struct inodes *inodes_new(void)
{
	struct inodes *inodes = calloc(1, sizeof(*inodes));
	if (!inodes)
		return NULL;
	pthread_mutex_init(&inodes->mutex, NULL);
	inodes->next_id = FUSE_ROOT_ID;
	struct node *root = node_new(NODE_ROOT, VIEW_NONE, "", "");
	if (!root || !add(inodes, root)) {
		free(root);
		inodes_free(inodes);
		return NULL;
	}
	root->inode = FUSE_ROOT_ID;
	inodes->root = root;
	return inodes;
}

void inodes_free(struct inodes *inodes)
{
	if (!inodes)
		return;
	for (size_t i = 0; i < inodes->buckets; i++)
		for (struct node *node = inodes->by_id[i], *next; node; node = next) {
			next = node->next_by_id;
			content_unref(node->content);
			staging_forget(node->staging);
			free(node);
		}
	free(inodes->by_id);
	free(inodes->by_identity);
	pthread_mutex_destroy(&inodes->mutex);
	free(inodes);
}

struct node *inodes_root(struct inodes *inodes)
{
	return inodes->root;
}

struct node *inodes_at(struct inodes *inodes, uint64_t id)
{
	pthread_mutex_lock(&inodes->mutex);
	struct node *node = inodes->by_id[id & (inodes->buckets - 1)];
	while (node && node->id != id)
		node = node->next_by_id;
	pthread_mutex_unlock(&inodes->mutex);
	return node;
}

/* The table's mutex is held. */
static struct node *find_or_add(struct inodes *inodes, enum node_type type, enum view view,
				const char *key, const char *etag)
{
	uint64_t hash = identity(type, view, key, etag);
	struct node *node = shared(type) ? inodes->by_identity[hash & (inodes->buckets - 1)] : NULL;
	while (node && !(node->type == type && node->view == view && strcmp(node->key, key) == 0 &&
			 strcmp(node->etag, etag) == 0))
		node = node->next_by_identity;
	if (!node) {
		struct node *made = node_new(type, view, key, etag);
		node = made ? add(inodes, made) : NULL;
		if (!node)
			free(made);
	}
	if (node)
		node->lookups++;
	return node;
}

struct node *inodes_look_up(struct inodes *inodes, enum node_type type, enum view view,
			    const char *key, const char *etag, const struct node_facts *facts)
{
	pthread_mutex_lock(&inodes->mutex);
	struct node *node = find_or_add(inodes, type, view, key, etag);
	if (node && facts)
		node->facts = *facts;
	pthread_mutex_unlock(&inodes->mutex);
	return node;
}

struct node *inodes_look_up_staging(struct inodes *inodes, enum view view,
				    struct staging_file *file)
{
	char key[32];
	snprintf(key, sizeof(key), "%llu", (unsigned long long)staging_id(file));
	pthread_mutex_lock(&inodes->mutex);
	struct node *node = find_or_add(inodes, NODE_STAGING, view, key, "");
	if (node && !node->staging) {
		staging_remember(file);
		node->staging = file;
	}
	pthread_mutex_unlock(&inodes->mutex);
	return node;
}

struct node_facts inodes_facts(struct inodes *inodes, struct node *node)
{
	pthread_mutex_lock(&inodes->mutex);
	struct node_facts facts = node->facts;
	pthread_mutex_unlock(&inodes->mutex);
	return facts;
}

void inodes_set_size(struct inodes *inodes, struct node *node, uint64_t size)
{
	pthread_mutex_lock(&inodes->mutex);
	node->facts.size = size;
	node->facts.modified = cairn_timestamp_now();
	pthread_mutex_unlock(&inodes->mutex);
}

void inodes_forget(struct inodes *inodes, uint64_t id, uint64_t count)
{
	pthread_mutex_lock(&inodes->mutex);
	struct node *node = inodes->by_id[id & (inodes->buckets - 1)];
	while (node && node->id != id)
		node = node->next_by_id;
	if (node) {
		node->lookups -= count < node->lookups ? count : node->lookups;
		free_if_unused(inodes, node);
	}
	pthread_mutex_unlock(&inodes->mutex);
}

void inodes_pin(struct inodes *inodes, struct node *node)
{
	pthread_mutex_lock(&inodes->mutex);
	node->pins++;
	pthread_mutex_unlock(&inodes->mutex);
}

void inodes_unpin(struct inodes *inodes, struct node *node)
{
	pthread_mutex_lock(&inodes->mutex);
	node->pins--;
	free_if_unused(inodes, node);
	pthread_mutex_unlock(&inodes->mutex);
}

/* The mutex is held. */
static void keep(struct inodes *inodes, struct node *node, struct content *content)
{
	content_unref(drop_content(inodes, node));
	if (content) {
		node->content = content_ref(content);
		inodes->kept += content->bytes.size;
		node->older = inodes->newest;
		*(inodes->newest ? &inodes->newest->newer : &inodes->oldest) = node;
		inodes->newest = node;
	}
	while (inodes->kept > KEPT_MAX && inodes->oldest && inodes->oldest != inodes->newest)
		content_unref(drop_content(inodes, inodes->oldest));
}

void inodes_keep(struct inodes *inodes, struct node *node, struct content *content)
{
	pthread_mutex_lock(&inodes->mutex);
	keep(inodes, node, content);
	pthread_mutex_unlock(&inodes->mutex);
}

void inodes_renew(struct inodes *inodes, struct node *node, const struct node_facts *facts,
		  struct content *content)
{
	pthread_mutex_lock(&inodes->mutex);
	if (facts->looked_up >= node->facts.looked_up) {
		node->facts = *facts;
		keep(inodes, node, content);
	}
	pthread_mutex_unlock(&inodes->mutex);
}

struct content *inodes_content(struct inodes *inodes, struct node *node)
{
	pthread_mutex_lock(&inodes->mutex);
	struct content *content = node->content ? content_ref(node->content) : NULL;
	pthread_mutex_unlock(&inodes->mutex);
	return content;
}

size_t inodes_count(struct inodes *inodes)
{
	pthread_mutex_lock(&inodes->mutex);
	size_t count = inodes->count;
	pthread_mutex_unlock(&inodes->mutex);
	return count;
}
