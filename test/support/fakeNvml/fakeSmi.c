/*
 * A stand-in for `nvidia-smi --query-gpu=…`: opens the library named as its only argument, reads every card once and
 * prints one line of values for each, as a program does that is started anew for every sample.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void *library;

static void *find(const char *name) {
  void *symbol = dlsym(library, name);
  if (symbol == NULL) {
    fprintf(stderr, "%s is missing\n", name);
    exit(9);
  }
  return symbol;
}

typedef int (*Read)(void *device, void *place);

static uint64_t number(const char *name, void *device) {
  uint64_t place[8] = { 0 };
  if (((Read)find(name))(device, place) != 0) return 0;
  return place[0];
}

int main(int argc, char **argv) {
  library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (library == NULL || ((int (*)(void))find("nvmlInit_v2"))() != 0) return 9;
  unsigned count = 0;
  ((int (*)(unsigned *))find("nvmlDeviceGetCount_v2"))(&count);
  for (unsigned index = 0; index < count; index++) {
    void *device = NULL;
    char uuid[96];
    uint64_t memory[3];
    unsigned rates[2], clock, temperature;
    if (((int (*)(unsigned, void **))find("nvmlDeviceGetHandleByIndex_v2"))(index, &device) != 0) continue;
    ((int (*)(void *, char *, unsigned))find("nvmlDeviceGetUUID"))(device, uuid, sizeof uuid);
    ((Read)find("nvmlDeviceGetMemoryInfo"))(device, memory);
    ((Read)find("nvmlDeviceGetUtilizationRates"))(device, rates);
    ((int (*)(void *, int, unsigned *))find("nvmlDeviceGetTemperature"))(device, 0, &temperature);
    ((int (*)(void *, int, unsigned *))find("nvmlDeviceGetClockInfo"))(device, 1, &clock);
    printf("%u, %s, %u, %u, %llu, %u, %llu, %u, %llu\n", index, uuid, rates[0], rates[1],
           (unsigned long long)memory[2] >> 20, temperature,
           (unsigned long long)number("nvmlDeviceGetPowerUsage", device), clock,
           (unsigned long long)number("nvmlDeviceGetCurrentClocksEventReasons", device));
  }
  return 0;
}
