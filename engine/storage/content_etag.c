/* SPDX-License-Identifier: MIT */
#include "storage/store_private.h"

#include <openssl/evp.h>

/*
 * Looking an algorithm up by name costs more than hashing a small object, so it is done once. The
 * algorithm is a constant of the process, no state.
 */
static EVP_MD *md5(void)
{
	static EVP_MD *shared;
	EVP_MD *known = __atomic_load_n(&shared, __ATOMIC_ACQUIRE);
	if (known)
		return known;
	EVP_MD *fetched = EVP_MD_fetch(NULL, "MD5", NULL);
	if (__atomic_compare_exchange_n(&shared, &known, fetched, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return fetched;
	EVP_MD_free(fetched);
	return known;
}

/* An EVP_MD_CTX under our name, so that only this file knows libcrypto. */
static EVP_MD_CTX *context_of(struct cairn_content_hash *hash)
{
	return (EVP_MD_CTX *)hash;
}

struct cairn_content_hash *cairn_content_hash_new(void)
{
	EVP_MD *algorithm = md5();
	EVP_MD_CTX *context = algorithm ? EVP_MD_CTX_new() : NULL;
	if (context && EVP_DigestInit_ex2(context, algorithm, NULL) != 1) {
		EVP_MD_CTX_free(context);
		context = NULL;
	}
	return (struct cairn_content_hash *)context;
}

int cairn_content_hash_update(struct cairn_content_hash *hash, const void *data, size_t size)
{
	return EVP_DigestUpdate(context_of(hash), data, size) == 1 ? CAIRN_OK : CAIRN_UNSUPPORTED;
}

int cairn_content_hash_final(struct cairn_content_hash *hash, char *ret_etag)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned size = 0;
	int done = hash ? EVP_DigestFinal_ex(context_of(hash), digest, &size) : 0;
	EVP_MD_CTX_free(context_of(hash));
	if (done != 1 || 2 * size + 1 != CAIRN_CONTENT_ETAG_SIZE)
		return CAIRN_UNSUPPORTED;
	for (unsigned i = 0; i < size; i++) {
		ret_etag[2 * i] = digits[digest[i] >> 4];
		ret_etag[2 * i + 1] = digits[digest[i] & 15];
	}
	ret_etag[2 * size] = '\0';
	return CAIRN_OK;
}

int cairn_content_etag(const void *data, size_t size, char *ret_etag)
{
	struct cairn_content_hash *hash = cairn_content_hash_new();
	if (hash && size && cairn_content_hash_update(hash, data, size)) {
		(void)cairn_content_hash_final(hash, ret_etag);
		return CAIRN_UNSUPPORTED;
	}
	return cairn_content_hash_final(hash, ret_etag);
}
