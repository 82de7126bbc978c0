#include <stdio.h>
#include "price.h"

#define LIMIT 10
#define TWICE(x) ((x) * 2)

typedef struct {
    int amount;
} price_t;

struct item {
    char *name;
    int (*handler)(int);
};

typedef int (*callback)(int);

enum state { OPEN, CLOSED };

union value { int i; float f; };

static int total = 0;

static inline int helper(int x)
{
    return TWICE(x);
}

char *load(const char *name) {
    printf("%d", helper(1));
    return NULL;
}

int main(void) { return 0; }
