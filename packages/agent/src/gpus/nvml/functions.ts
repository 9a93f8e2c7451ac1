/**
 * The functions of NVML that are used, with their parameters, as in NVIDIA's nvml.h (API 13). No other file names a
 * signature. Each one may be missing in the library of an older driver.
 */

/** A handle and every pointer the library hands out is passed on as a number: none has more than 48 bits. */
type Parameter = 'uintptr_t' | 'unsigned int' | 'int' | 'unsigned long long' | 'void *';

const device = 'uintptr_t';
const out = 'void *';

export const nvmlFunctions = {
  nvmlInit_v2: [],
  nvmlSystemGetDriverVersion: [out, 'unsigned int'],
  nvmlSystemGetCudaDriverVersion_v2: [out],
  nvmlDeviceGetCount_v2: [out],
  nvmlDeviceGetHandleByIndex_v2: ['unsigned int', out],
  nvmlDeviceGetUUID: [device, out, 'unsigned int'],
  nvmlDeviceGetName: [device, out, 'unsigned int'],
  nvmlDeviceGetSerial: [device, out, 'unsigned int'],
  nvmlDeviceGetPciInfo_v3: [device, out],
  nvmlDeviceGetMemoryInfo: [device, out],
  nvmlDeviceGetMemoryInfo_v2: [device, out],
  nvmlDeviceGetUtilizationRates: [device, out],
  nvmlDeviceGetEncoderUtilization: [device, out, out],
  nvmlDeviceGetDecoderUtilization: [device, out, out],
  nvmlDeviceGetTemperature: [device, 'int', out],
  nvmlDeviceGetTemperatureV: [device, out],
  nvmlDeviceGetPowerUsage: [device, out],
  nvmlDeviceGetEnforcedPowerLimit: [device, out],
  nvmlDeviceGetTotalEnergyConsumption: [device, out],
  nvmlDeviceGetClockInfo: [device, 'int', out],
  nvmlDeviceGetCurrentClocksEventReasons: [device, out],
  /** The same before R535. */
  nvmlDeviceGetCurrentClocksThrottleReasons: [device, out],
  nvmlDeviceGetComputeRunningProcesses_v3: [device, out, out],
  nvmlDeviceGetPcieReplayCounter: [device, out],
  nvmlDeviceGetFieldValues: [device, 'int', out],
  nvmlDeviceGetNvLinkState: [device, 'unsigned int', out],
  nvmlDeviceGetNvLinkErrorCounter: [device, 'unsigned int', 'int', out],
  nvmlDeviceGetNvLinkRemotePciInfo_v2: [device, 'unsigned int', out],
  nvmlDeviceGetNvLinkRemoteDeviceType: [device, 'unsigned int', out],
  nvmlDeviceGetTotalEccErrors: [device, 'int', 'int', out],
  nvmlDeviceGetSramEccErrorStatus: [device, out],
  nvmlDeviceGetRemappedRows: [device, out, out, out, out],
  nvmlDeviceGetRetiredPages: [device, 'int', out, out],
  nvmlDeviceGetRetiredPagesPendingStatus: [device, out],
  nvmlDeviceGetMigMode: [device, out, out],
  nvmlDeviceGetMaxMigDeviceCount: [device, out],
  nvmlDeviceGetMigDeviceHandleByIndex: [device, 'unsigned int', out],
  nvmlDeviceGetGpuInstanceId: [device, out],
  nvmlDeviceGetComputeInstanceId: [device, out],
  nvmlDeviceGetAttributes_v2: [device, out],
  nvmlDeviceGetTopologyCommonAncestor: [device, device, out],
  nvmlDeviceGetCpuAffinity: [device, 'unsigned int', out],
  nvmlDeviceGetMemoryAffinity: [device, 'unsigned int', out, 'unsigned int'],
  nvmlEventSetCreate: [out],
  nvmlDeviceGetSupportedEventTypes: [device, out],
  nvmlDeviceRegisterEvents: [device, 'unsigned long long', device],
  nvmlEventSetWait_v2: [device, out, 'unsigned int'],
  nvmlGpmQueryDeviceSupport: [device, out],
  nvmlGpmSampleAlloc: [out],
  nvmlGpmSampleFree: [device],
  nvmlGpmSampleGet: [device, device],
  nvmlGpmMigSampleGet: [device, 'unsigned int', device],
  nvmlGpmMetricsGet: [out],
} as const satisfies Readonly<Record<string, readonly Parameter[]>>;

export type NvmlFunction = keyof typeof nvmlFunctions;

/** In a fixed order: the reader notes the number of the function that it is about to call. */
export const functionNames = Object.keys(nvmlFunctions) as readonly NvmlFunction[];
