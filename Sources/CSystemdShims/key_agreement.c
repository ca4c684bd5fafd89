/* SPDX-License-Identifier: Apache-2.0 */
#ifdef KEYCHAIN_SECRET_SERVICE
#include "CSystemdShims.h"

#include <gcrypt.h>
#include <pthread.h>
#include <string.h>

/* Source: RFC 2409, section 6.2. */
static const unsigned char prime_bytes[KEYCHAIN_AGREEMENT_BYTE_COUNT] = {
    0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xC9, 0x0F, 0xDA, 0xA2, 0x21, 0x68, 0xC2, 0x34, 0xC4, 0xC6, 0x62, 0x8B, 0x80, 0xDC,
    0x1C, 0xD1, 0x29, 0x02, 0x4E, 0x08, 0x8A, 0x67, 0xCC, 0x74, 0x02, 0x0B, 0xBE, 0xA6, 0x3B, 0x13, 0x9B, 0x22, 0x51, 0x4A, 0x08, 0x79,
    0x8E, 0x34, 0x04, 0xDD, 0xEF, 0x95, 0x19, 0xB3, 0xCD, 0x3A, 0x43, 0x1B, 0x30, 0x2B, 0x0A, 0x6D, 0xF2, 0x5F, 0x14, 0x37, 0x4F, 0xE1,
    0x35, 0x6D, 0x6D, 0x51, 0xC2, 0x45, 0xE4, 0x85, 0xB5, 0x76, 0x62, 0x5E, 0x7E, 0xC6, 0xF4, 0x4C, 0x42, 0xE9, 0xA6, 0x37, 0xED, 0x6B,
    0x0B, 0xFF, 0x5C, 0xB6, 0xF4, 0x06, 0xB7, 0xED, 0xEE, 0x38, 0x6B, 0xFB, 0x5A, 0x89, 0x9F, 0xA5, 0xAE, 0x9F, 0x24, 0x11, 0x7C, 0x4B,
    0x1F, 0xE6, 0x49, 0x28, 0x66, 0x51, 0xEC, 0xE6, 0x53, 0x81, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
};

enum { private_key_byte_count = 32 };

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Private keys are computed with in memory that libgcrypt wipes. */
static void initialize(void) {
    if (gcry_control(GCRYCTL_INITIALIZATION_FINISHED_P)) return;
    gcry_check_version(NULL);
    gcry_control(GCRYCTL_SUSPEND_SECMEM_WARN);
    gcry_control(GCRYCTL_INIT_SECMEM, 32768, 0);
    gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);
}

static gcry_mpi_t number(const uint8_t *bytes, size_t count) {
    gcry_mpi_t number = NULL;
    return gcry_mpi_scan(&number, GCRYMPI_FMT_USG, bytes, count, NULL) == 0 ? number : NULL;
}

/* Computes base ^ exponent mod p, with leading zeros. The exponent is secret. */
static bool power(gcry_mpi_t base, const uint8_t exponent_bytes[KEYCHAIN_AGREEMENT_BYTE_COUNT], gcry_mpi_t prime, uint8_t *result) {
    gcry_mpi_t value = gcry_mpi_snew(8 * KEYCHAIN_AGREEMENT_BYTE_COUNT);
    /* A number from secure memory is in secure memory. */
    unsigned char *copy = gcry_malloc_secure(KEYCHAIN_AGREEMENT_BYTE_COUNT);
    if (copy != NULL) memcpy(copy, exponent_bytes, KEYCHAIN_AGREEMENT_BYTE_COUNT);
    gcry_mpi_t exponent = copy == NULL ? NULL : number(copy, KEYCHAIN_AGREEMENT_BYTE_COUNT);
    gcry_free(copy);
    bool is_done = false;
    if (exponent != NULL && value != NULL) {
        gcry_mpi_powm(value, base, exponent, prime);
        unsigned char bytes[KEYCHAIN_AGREEMENT_BYTE_COUNT];
        size_t count = 0;
        if (gcry_mpi_print(GCRYMPI_FMT_USG, bytes, sizeof bytes, &count, value) == 0) {
            memset(result, 0, KEYCHAIN_AGREEMENT_BYTE_COUNT - count);
            memcpy(result + KEYCHAIN_AGREEMENT_BYTE_COUNT - count, bytes, count);
            is_done = true;
        }
        explicit_bzero(bytes, sizeof bytes);
    }
    gcry_mpi_release(exponent);
    gcry_mpi_release(value);
    return is_done;
}

bool keychain_agreement_make_keys(
    uint8_t private_key[KEYCHAIN_AGREEMENT_BYTE_COUNT], uint8_t public_key[KEYCHAIN_AGREEMENT_BYTE_COUNT]) {
    pthread_once(&once, initialize);
    /* Twice the bits that an attack on a group of this size takes, and more, as RFC 7919, section 5.2, recommends; a longer one costs time only. */
    memset(private_key, 0, KEYCHAIN_AGREEMENT_BYTE_COUNT - private_key_byte_count);
    gcry_randomize(private_key + KEYCHAIN_AGREEMENT_BYTE_COUNT - private_key_byte_count, private_key_byte_count, GCRY_STRONG_RANDOM);
    gcry_mpi_t prime = number(prime_bytes, sizeof prime_bytes);
    gcry_mpi_t generator = gcry_mpi_set_ui(NULL, 2);
    bool is_done = prime != NULL && generator != NULL && power(generator, private_key, prime, public_key);
    gcry_mpi_release(prime);
    gcry_mpi_release(generator);
    return is_done;
}

bool keychain_agreement_secret(
    const uint8_t private_key[KEYCHAIN_AGREEMENT_BYTE_COUNT], const uint8_t *public_key, size_t public_key_byte_count,
    uint8_t secret[KEYCHAIN_AGREEMENT_BYTE_COUNT]) {
    pthread_once(&once, initialize);
    /* Some implementations put a zero in front, so that the number is not negative. */
    while (public_key_byte_count > 0 && public_key[0] == 0) {
        public_key++;
        public_key_byte_count--;
    }
    if (public_key_byte_count == 0 || public_key_byte_count > KEYCHAIN_AGREEMENT_BYTE_COUNT) return false;
    gcry_mpi_t prime = number(prime_bytes, sizeof prime_bytes);
    gcry_mpi_t other = number(public_key, public_key_byte_count);
    gcry_mpi_t largest = gcry_mpi_new(0);
    bool is_done = false;
    if (prime != NULL && other != NULL && largest != NULL) {
        gcry_mpi_sub_ui(largest, prime, 1);
        is_done = gcry_mpi_cmp_ui(other, 1) > 0 && gcry_mpi_cmp(other, largest) < 0 && power(other, private_key, prime, secret);
    }
    gcry_mpi_release(prime);
    gcry_mpi_release(other);
    gcry_mpi_release(largest);
    return is_done;
}
#endif
