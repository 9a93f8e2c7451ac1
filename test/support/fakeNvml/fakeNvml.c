/*
 * A stand-in for NVIDIA's libnvidia-ml.so.1. What it answers lies in a file that a test maps too and changes while the
 * library is in use; layout.h, made by layout.ts, says where. That file is called `state` and lies beside the library.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "layout.h"

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
       TIMEOUT = 10, GPU_IS_LOST = 15, ARGUMENT_VERSION_MISMATCH = 25 };

typedef struct { int card; int slot; } Device;

static volatile int64_t *state;
static Device cards[CARDS_MAX];
static Device instances[CARDS_MAX][8];
/* Cards in the order in which they were found when the driver was opened. */
static int opened[CARDS_MAX];
static int openedCount;
static int64_t xidsTold[CARDS_MAX];

static int64_t valueOf(int card, int value) { return state[VALUES_AT + card * VALUE_COUNT + value]; }
static int isAbsent(int64_t value) { return value == INT64_MIN; }

/* The clock of CPU time would be the right one, but each look at it is a system call, and dearer than most calls here. */
static int64_t nowNanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Every function begins here. card -1: about no card. Returns the code to answer with at once, or 0. */
static int enter(int function, int card) {
  if (state == NULL) return UNINITIALIZED;
  int64_t cost = state[COSTS_AT + function] * 1000;
  if (cost > 0) {
    int64_t until = nowNanoseconds() + cost;
    while (nowNanoseconds() < until) {}
    state[GLOBAL_libraryNanoseconds] += cost;
  }
  state[CALLS_AT + function] += 1;
  volatile int64_t *behaviour = &state[BEHAVIOURS_AT + (card < 0 ? CARDS_MAX : card) * FUNCTION_COUNT + function];
  if (*behaviour == -2) abort();
  while (*behaviour == -1) usleep(1000);
  if (*behaviour > 0) return (int)*behaviour;
  if (card >= 0 && !valueOf(card, VALUE_present)) return GPU_IS_LOST;
  return SUCCESS;
}

#define ENTER(function, card) \
  do { int code = enter(FUNCTION_##function, card); if (code != SUCCESS) return code; } while (0)

#define GIVE(type, place, number) \
  do { int64_t given = (number); if (isAbsent(given)) return NOT_SUPPORTED; *(place) = (type)given; return SUCCESS; } while (0)

/* Functions of one card that give one number. */
#define NUMBER(function, type, value) \
  int function(Device *device, type *place) { \
    ENTER(function, device->card); \
    GIVE(type, place, valueOf(device->card, VALUE_##value)); \
  }

static int isInstance(const Device *device) { return device->slot >= 0; }

int nvmlInit_v2(void) {
  if (state == NULL) {
    Dl_info self;
    char path[4096];
    if (!dladdr((void *)nvmlInit_v2, &self)) return 999;
    snprintf(path, sizeof path, "%.*s/state", (int)(strrchr(self.dli_fname, '/') - self.dli_fname), self.dli_fname);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return 999;
    void *mapped = mmap(NULL, STATE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped == MAP_FAILED) return 999;
    state = mapped;
  }
  ENTER(nvmlInit_v2, -1);
  openedCount = 0;
  for (int card = 0; card < state[GLOBAL_cardCount]; card++) {
    xidsTold[card] = valueOf(card, VALUE_xidCount);
    if (valueOf(card, VALUE_present)) opened[openedCount++] = card;
  }
  return SUCCESS;
}

int nvmlSystemGetDriverVersion(char *text, unsigned size) {
  ENTER(nvmlSystemGetDriverVersion, -1);
  snprintf(text, size, "%d.20.1", (int)state[GLOBAL_driverMajor]);
  return SUCCESS;
}

int nvmlSystemGetCudaDriverVersion_v2(int *version) {
  ENTER(nvmlSystemGetCudaDriverVersion_v2, -1);
  GIVE(int, version, state[GLOBAL_cudaVersion]);
}

int nvmlDeviceGetCount_v2(unsigned *count) {
  ENTER(nvmlDeviceGetCount_v2, -1);
  *count = openedCount;
  return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **device) {
  if (index >= (unsigned)openedCount) return INVALID_ARGUMENT;
  int card = opened[index];
  ENTER(nvmlDeviceGetHandleByIndex_v2, card);
  cards[card] = (Device){ card, -1 };
  *device = &cards[card];
  return SUCCESS;
}

int nvmlDeviceGetUUID(Device *device, char *text, unsigned size) {
  ENTER(nvmlDeviceGetUUID, device->card);
  if (isInstance(device)) snprintf(text, size, "MIG-fa4e0000-0000-4000-8000-0000000%02x%03x", device->card, device->slot);
  else snprintf(text, size, "GPU-fa4e0000-0000-4000-8000-0000000000%02x", device->card);
  return SUCCESS;
}

int nvmlDeviceGetName(Device *device, char *text, unsigned size) {
  ENTER(nvmlDeviceGetName, device->card);
  snprintf(text, size, "Fake H100%s", isInstance(device) ? " MIG 1g.10gb" : "");
  return SUCCESS;
}

int nvmlDeviceGetSerial(Device *device, char *text, unsigned size) {
  ENTER(nvmlDeviceGetSerial, device->card);
  snprintf(text, size, "13200000000%02d", device->card);
  return SUCCESS;
}

/* domain@16 bus@20 device@24 busId@36 */
static void writePci(unsigned char *info, int card) {
  uint32_t bus = 0x10 + card;
  memset(info, 0, 68);
  memcpy(info + 20, &bus, 4);
  snprintf((char *)info + 36, 32, "00000000:%02X:00.0", bus);
}

int nvmlDeviceGetPciInfo_v3(Device *device, unsigned char *info) {
  ENTER(nvmlDeviceGetPciInfo_v3, device->card);
  writePci(info, device->card);
  return SUCCESS;
}

static uint64_t bytesOf(const Device *device, int value) {
  int64_t mebibytes = valueOf(device->card, value);
  return (uint64_t)(isInstance(device) ? mebibytes / 8 : mebibytes) << 20;
}

int nvmlDeviceGetMemoryInfo(Device *device, uint64_t *info) {
  ENTER(nvmlDeviceGetMemoryInfo, device->card);
  info[0] = bytesOf(device, VALUE_memoryTotalMb);
  info[1] = bytesOf(device, VALUE_memoryFreeMb);
  info[2] = bytesOf(device, VALUE_memoryUsedMb) + bytesOf(device, VALUE_memoryReservedMb);
  return SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(Device *device, uint64_t *info) {
  ENTER(nvmlDeviceGetMemoryInfo_v2, device->card);
  if (*(uint32_t *)info != 0x02000028) return ARGUMENT_VERSION_MISMATCH;
  info[1] = bytesOf(device, VALUE_memoryTotalMb);
  info[2] = bytesOf(device, VALUE_memoryReservedMb);
  info[3] = bytesOf(device, VALUE_memoryFreeMb);
  info[4] = bytesOf(device, VALUE_memoryUsedMb);
  return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(Device *device, unsigned *rates) {
  ENTER(nvmlDeviceGetUtilizationRates, device->card);
  if (valueOf(device->card, VALUE_migMode) == 1) return NOT_SUPPORTED;
  rates[1] = (unsigned)valueOf(device->card, VALUE_memoryUtilization);
  GIVE(unsigned, rates, valueOf(device->card, VALUE_utilization));
}

int nvmlDeviceGetEncoderUtilization(Device *device, unsigned *percent, unsigned *period) {
  ENTER(nvmlDeviceGetEncoderUtilization, device->card);
  *period = 167000;
  GIVE(unsigned, percent, valueOf(device->card, VALUE_encoderUtilization));
}

int nvmlDeviceGetDecoderUtilization(Device *device, unsigned *percent, unsigned *period) {
  ENTER(nvmlDeviceGetDecoderUtilization, device->card);
  *period = 167000;
  GIVE(unsigned, percent, valueOf(device->card, VALUE_decoderUtilization));
}

int nvmlDeviceGetTemperature(Device *device, int sensor, unsigned *degrees) {
  ENTER(nvmlDeviceGetTemperature, device->card);
  if (sensor != 0) return INVALID_ARGUMENT;
  GIVE(unsigned, degrees, valueOf(device->card, VALUE_temperature));
}

int nvmlDeviceGetTemperatureV(Device *device, int32_t *temperature) {
  ENTER(nvmlDeviceGetTemperatureV, device->card);
  if (temperature[0] != 0x0100000c || temperature[1] != 0) return ARGUMENT_VERSION_MISMATCH;
  GIVE(int32_t, temperature + 2, valueOf(device->card, VALUE_temperature));
}

NUMBER(nvmlDeviceGetPowerUsage, unsigned, powerMilliwatts)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned, powerLimitMilliwatts)
NUMBER(nvmlDeviceGetTotalEnergyConsumption, uint64_t, energyMillijoules)
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, uint64_t, clockEventReasons)
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, uint64_t, clockEventReasons)
NUMBER(nvmlDeviceGetPcieReplayCounter, unsigned, pcieReplays)
NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, int, pagesPending)

int nvmlDeviceGetClockInfo(Device *device, int type, unsigned *megahertz) {
  ENTER(nvmlDeviceGetClockInfo, device->card);
  GIVE(unsigned, megahertz, valueOf(device->card, type == 1 ? VALUE_smClockMhz : VALUE_memoryClockMhz));
}

int nvmlDeviceGetComputeRunningProcesses_v3(Device *device, unsigned *count, unsigned char *infos) {
  ENTER(nvmlDeviceGetComputeRunningProcesses_v3, device->card);
  int64_t found = valueOf(device->card, VALUE_processCount);
  if (isAbsent(found)) return NOT_SUPPORTED;
  unsigned room = *count;
  *count = (unsigned)found;
  if (room < (unsigned)found) return INSUFFICIENT_SIZE;
  for (int64_t index = 0; index < found; index++) {
    uint32_t pid = (uint32_t)valueOf(device->card, VALUE_processPid);
    int64_t mebibytes = valueOf(device->card, VALUE_processMemoryMb);
    uint64_t bytes = isAbsent(mebibytes) ? UINT64_MAX : (uint64_t)mebibytes << 20;
    memcpy(infos + index * 24, &pid, 4);
    memcpy(infos + index * 24 + 8, &bytes, 8);
  }
  return SUCCESS;
}

/* Of 40 bytes: fieldId@0 scopeId@4 timestamp@8 valueType@24 nvmlReturn@28 value@32. */
static void writeField(int card, unsigned char *field) {
  uint32_t id, scope;
  memcpy(&id, field, 4);
  memcpy(&scope, field + 4, 4);
  int value = id == 82 ? VALUE_memoryTemperature : id == 230 ? VALUE_recoveryAction : id == 197 ? VALUE_pcieTxBytes
    : id == 198 ? VALUE_pcieRxBytes : id == 138 && scope == UINT32_MAX ? VALUE_nvlinkTxKib
    : id == 139 && scope == UINT32_MAX ? VALUE_nvlinkRxKib : -1;
  int64_t number = value < 0 ? INT64_MIN : valueOf(card, value);
  int32_t code = isAbsent(number) ? NOT_SUPPORTED : SUCCESS;
  int32_t type = id == 82 || id == 230 ? 1 : (int32_t)valueOf(card, VALUE_counterType);
  int64_t micros = valueOf(card, VALUE_counterMicros);
  memcpy(field + 8, &micros, 8);
  memcpy(field + 24, &type, 4);
  memcpy(field + 28, &code, 4);
  memcpy(field + 32, &number, 8);
}

int nvmlDeviceGetFieldValues(Device *device, int count, unsigned char *fields) {
  ENTER(nvmlDeviceGetFieldValues, device->card);
  for (int index = 0; index < count; index++) writeField(device->card, fields + index * 40);
  return SUCCESS;
}

/* ---- Errors that the card counts */

int nvmlDeviceGetTotalEccErrors(Device *device, int type, int counter, uint64_t *count) {
  ENTER(nvmlDeviceGetTotalEccErrors, device->card);
  int value = counter == 0 ? (type == 0 ? VALUE_eccCorrectedVolatile : VALUE_eccUncorrectedVolatile)
                           : (type == 0 ? VALUE_eccCorrectedAggregate : VALUE_eccUncorrectedAggregate);
  GIVE(uint64_t, count, valueOf(device->card, value));
}

int nvmlDeviceGetSramEccErrorStatus(Device *device, unsigned char *status) {
  ENTER(nvmlDeviceGetSramEccErrorStatus, device->card);
  if (*(uint32_t *)status != 0x01000068) return ARGUMENT_VERSION_MISMATCH;
  GIVE(uint32_t, (uint32_t *)(status + 96), valueOf(device->card, VALUE_sramThresholdExceeded));
}

int nvmlDeviceGetRemappedRows(Device *device, unsigned *correctable, unsigned *uncorrectable, unsigned *pending, unsigned *failed) {
  ENTER(nvmlDeviceGetRemappedRows, device->card);
  if (valueOf(device->card, VALUE_migMode) == 1) return NOT_SUPPORTED;
  *uncorrectable = (unsigned)valueOf(device->card, VALUE_rowsUncorrectable);
  *pending = (unsigned)valueOf(device->card, VALUE_rowsPending);
  *failed = (unsigned)valueOf(device->card, VALUE_rowsFailed);
  GIVE(unsigned, correctable, valueOf(device->card, VALUE_rowsCorrectable));
}

int nvmlDeviceGetRetiredPages(Device *device, int cause, unsigned *count, uint64_t *addresses) {
  ENTER(nvmlDeviceGetRetiredPages, device->card);
  int64_t pages = valueOf(device->card, cause == 0 ? VALUE_pagesSingleBit : VALUE_pagesDoubleBit);
  if (isAbsent(pages)) return NOT_SUPPORTED;
  unsigned room = *count;
  *count = (unsigned)pages;
  return room < (unsigned)pages || addresses == NULL ? (pages == 0 ? SUCCESS : INSUFFICIENT_SIZE) : SUCCESS;
}

/* ---- NVLink and topology */

static int linkCount(int card) {
  return (int)(valueOf(card, VALUE_switchLinks) + valueOf(card, VALUE_pairLinks));
}

int nvmlDeviceGetNvLinkState(Device *device, unsigned link, int *isActive) {
  ENTER(nvmlDeviceGetNvLinkState, device->card);
  if (link >= (unsigned)linkCount(device->card)) return NOT_SUPPORTED;
  *isActive = 1;
  return SUCCESS;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(Device *device, unsigned link, int *type) {
  ENTER(nvmlDeviceGetNvLinkRemoteDeviceType, device->card);
  *type = link < (unsigned)valueOf(device->card, VALUE_switchLinks) ? 2 : 0;
  return SUCCESS;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device *device, unsigned link, unsigned char *info) {
  ENTER(nvmlDeviceGetNvLinkRemotePciInfo_v2, device->card);
  (void)link;
  writePci(info, device->card ^ 1);
  return SUCCESS;
}

int nvmlDeviceGetNvLinkErrorCounter(Device *device, unsigned link, int counter, uint64_t *count) {
  ENTER(nvmlDeviceGetNvLinkErrorCounter, device->card);
  (void)link;
  int value = counter == 0 ? VALUE_linkReplays : counter == 1 ? VALUE_linkRecoveries : VALUE_linkCrcErrors;
  GIVE(uint64_t, count, valueOf(device->card, value));
}

int nvmlDeviceGetTopologyCommonAncestor(Device *one, Device *other, int *level) {
  ENTER(nvmlDeviceGetTopologyCommonAncestor, one->card);
  int isPair = (one->card ^ 1) == other->card;
  int isNear = valueOf(one->card, VALUE_numaNode) == valueOf(other->card, VALUE_numaNode);
  *level = isPair ? 10 : isNear ? 40 : 50;
  return SUCCESS;
}

int nvmlDeviceGetCpuAffinity(Device *device, unsigned words, uint64_t *mask) {
  ENTER(nvmlDeviceGetCpuAffinity, device->card);
  memset(mask, 0, words * 8);
  int64_t last = valueOf(device->card, VALUE_cpuLast);
  for (int64_t cpu = valueOf(device->card, VALUE_cpuFirst); cpu <= last; cpu++) mask[cpu / 64] |= 1ULL << (cpu % 64);
  return SUCCESS;
}

int nvmlDeviceGetMemoryAffinity(Device *device, unsigned words, uint64_t *mask, unsigned scope) {
  ENTER(nvmlDeviceGetMemoryAffinity, device->card);
  int64_t node = valueOf(device->card, VALUE_numaNode);
  if (isAbsent(node) || scope != 0) return NOT_SUPPORTED;
  memset(mask, 0, words * 8);
  mask[node / 64] = 1ULL << (node % 64);
  return SUCCESS;
}

/* ---- MIG */

int nvmlDeviceGetMigMode(Device *device, unsigned *current, unsigned *pending) {
  ENTER(nvmlDeviceGetMigMode, device->card);
  *pending = (unsigned)valueOf(device->card, VALUE_migMode);
  GIVE(unsigned, current, valueOf(device->card, VALUE_migMode));
}

int nvmlDeviceGetMaxMigDeviceCount(Device *device, unsigned *count) {
  ENTER(nvmlDeviceGetMaxMigDeviceCount, device->card);
  *count = 7;
  return SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(Device *device, unsigned slot, Device **instance) {
  ENTER(nvmlDeviceGetMigDeviceHandleByIndex, device->card);
  if (slot >= 7 || !(valueOf(device->card, VALUE_migSlots) >> slot & 1)) return NOT_FOUND;
  instances[device->card][slot] = (Device){ device->card, (int)slot };
  *instance = &instances[device->card][slot];
  return SUCCESS;
}

int nvmlDeviceGetGpuInstanceId(Device *device, unsigned *id) {
  ENTER(nvmlDeviceGetGpuInstanceId, device->card);
  *id = 7 + device->slot;
  return SUCCESS;
}

int nvmlDeviceGetComputeInstanceId(Device *device, unsigned *id) {
  ENTER(nvmlDeviceGetComputeInstanceId, device->card);
  *id = 0;
  return SUCCESS;
}

/* gpuInstanceSliceCount@24 computeInstanceSliceCount@28 memorySizeMB@32 */
int nvmlDeviceGetAttributes_v2(Device *device, unsigned char *attributes) {
  ENTER(nvmlDeviceGetAttributes_v2, device->card);
  uint32_t one = 1;
  uint64_t mebibytes = (uint64_t)valueOf(device->card, VALUE_memoryTotalMb) / 8;
  memset(attributes, 0, 40);
  memcpy(attributes + 24, &one, 4);
  memcpy(attributes + 28, &one, 4);
  memcpy(attributes + 32, &mebibytes, 8);
  return SUCCESS;
}

/* ---- Events */

int nvmlEventSetCreate(void **set) {
  ENTER(nvmlEventSetCreate, -1);
  *set = &openedCount;
  return SUCCESS;
}

int nvmlDeviceGetSupportedEventTypes(Device *device, uint64_t *types) {
  ENTER(nvmlDeviceGetSupportedEventTypes, device->card);
  *types = 0x1f;
  return SUCCESS;
}

int nvmlDeviceRegisterEvents(Device *device, uint64_t types, void *set) {
  ENTER(nvmlDeviceRegisterEvents, device->card);
  return set == &openedCount && types == 8 ? SUCCESS : INVALID_ARGUMENT;
}

/* device@0 eventType@8 eventData@16 */
int nvmlEventSetWait_v2(void *set, uint64_t *event, unsigned milliseconds) {
  ENTER(nvmlEventSetWait_v2, -1);
  (void)set;
  unsigned pause = (unsigned)state[GLOBAL_eventPollMs];
  for (unsigned waited = 0; waited <= milliseconds; waited += pause) {
    for (int index = 0; index < openedCount; index++) {
      int card = opened[index];
      if (valueOf(card, VALUE_xidCount) <= xidsTold[card]) continue;
      xidsTold[card] += 1;
      event[0] = (uint64_t)(uintptr_t)&cards[card];
      event[1] = 8;
      event[2] = (uint64_t)valueOf(card, VALUE_xid);
      return SUCCESS;
    }
    usleep(pause * 1000);
  }
  return TIMEOUT;
}

/* ---- GPM */

typedef struct { int card; int instance; int isTaken; } GpmSample;

/* version@0 isSupportedDevice@4 */
int nvmlGpmQueryDeviceSupport(Device *device, uint32_t *support) {
  ENTER(nvmlGpmQueryDeviceSupport, device->card);
  if (support[0] != 1) return ARGUMENT_VERSION_MISMATCH;
  support[1] = (uint32_t)valueOf(device->card, VALUE_gpmSupported);
  return SUCCESS;
}

int nvmlGpmSampleAlloc(GpmSample **sample) {
  ENTER(nvmlGpmSampleAlloc, -1);
  *sample = calloc(1, sizeof **sample);
  return SUCCESS;
}

int nvmlGpmSampleFree(GpmSample *sample) {
  ENTER(nvmlGpmSampleFree, -1);
  free(sample);
  return SUCCESS;
}

int nvmlGpmSampleGet(Device *device, GpmSample *sample) {
  ENTER(nvmlGpmSampleGet, device->card);
  *sample = (GpmSample){ device->card, -1, 1 };
  return SUCCESS;
}

int nvmlGpmMigSampleGet(Device *device, unsigned instance, GpmSample *sample) {
  ENTER(nvmlGpmMigSampleGet, device->card);
  *sample = (GpmSample){ device->card, (int)instance, 1 };
  return SUCCESS;
}

/* version@0 numMetrics@4 sample1@8 sample2@16; each of 40 bytes from 24 on: metricId@0 nvmlReturn@4 value@8. */
int nvmlGpmMetricsGet(unsigned char *query) {
  uint32_t version, count;
  GpmSample *before, *now;
  memcpy(&version, query, 4);
  memcpy(&count, query + 4, 4);
  memcpy(&before, query + 8, 8);
  memcpy(&now, query + 16, 8);
  if (version != 1) return ARGUMENT_VERSION_MISMATCH;
  if (!before->isTaken || !now->isTaken || before->instance != now->instance) return INVALID_ARGUMENT;
  ENTER(nvmlGpmMetricsGet, now->card);
  for (uint32_t index = 0; index < count; index++) {
    unsigned char *metric = query + 24 + index * 40;
    uint32_t id;
    memcpy(&id, metric, 4);
    int64_t number = valueOf(now->card, id >= 20 ? VALUE_gpmMebibytes : VALUE_gpmPercent);
    int32_t code = isAbsent(number) ? NOT_SUPPORTED : SUCCESS;
    /* Each its own value, so that a mix-up shows: the percentage plus the number of the metric. */
    double value = id >= 20 ? (double)(number + id) : (double)number + id / 100.0;
    memcpy(metric + 4, &code, 4);
    memcpy(metric + 8, &value, 8);
  }
  return SUCCESS;
}
