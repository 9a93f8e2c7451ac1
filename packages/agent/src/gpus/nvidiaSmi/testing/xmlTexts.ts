/** Small documents in the shapes that nvidia-smi has had. Invented cards. */

/** @param elements of the card beside its identity */
export function aCardXml(uuid: string, elements: string): string {
  return `<gpu id="00000000:3B:00.0">
  <product_name>NVIDIA Test 40GB</product_name>
  <serial>1322000000001</serial>
  <uuid>${uuid}</uuid>
  <pci><pci_bus_id>00000000:3B:00.0</pci_bus_id><replay_counter>4</replay_counter></pci>
  ${elements}
</gpu>`;
}

export function aLogXml(cards: readonly string[], dtd: number | null = 12): string {
  const type = dtd === null ? 'nvsmi_device.dtd' : `nvsmi_device_v${dtd}.dtd`;
  return `<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "${type}">
<nvidia_smi_log>
  <timestamp>Mon Jan  5 10:00:00 2026</timestamp>
  <driver_version>550.10.02</driver_version>
  <cuda_version>12.4</cuda_version>
  <attached_gpus>${cards.length}</attached_gpus>
  ${cards.join('\n')}
</nvidia_smi_log>
`;
}

const memory =
  '<fb_memory_usage><total>40960 MiB</total><reserved>600 MiB</reserved><used>1200 MiB</used><free>39160 MiB</free></fb_memory_usage>';

/** v10 to v12 of R525: one power reading, throttle reasons, ECC by kind of memory. */
export const oldCard = aCardXml(
  'GPU-01d00000-0000-4000-8000-000000000001',
  `<clocks_throttle_reasons>
    <clocks_throttle_reason_gpu_idle>Not Active</clocks_throttle_reason_gpu_idle>
    <clocks_throttle_reason_hw_slowdown>Active</clocks_throttle_reason_hw_slowdown>
    <clocks_throttle_reason_hw_power_brake_slowdown>Active</clocks_throttle_reason_hw_power_brake_slowdown>
  </clocks_throttle_reasons>
  ${memory}
  <utilization><gpu_util>55 %</gpu_util><memory_util>20 %</memory_util></utilization>
  <ecc_errors>
    <volatile><single_bit><total>2</total></single_bit><double_bit><total>0</total></double_bit></volatile>
    <aggregate><single_bit><total>9</total></single_bit><double_bit><total>1</total></double_bit></aggregate>
  </ecc_errors>
  <retired_pages>
    <multiple_single_bit_retirement><retired_count>3</retired_count></multiple_single_bit_retirement>
    <double_bit_retirement><retired_count>1</retired_count></double_bit_retirement>
    <pending_retirement>Yes</pending_retirement>
  </retired_pages>
  <remapped_rows>N/A</remapped_rows>
  <temperature><gpu_temp>66 C</gpu_temp><memory_temp>N/A</memory_temp></temperature>
  <power_readings><power_draw>201.50 W</power_draw><enforced_power_limit>250.00 W</enforced_power_limit></power_readings>
  <clocks><sm_clock>1300 MHz</sm_clock><mem_clock>877 MHz</mem_clock></clocks>
  <processes>
    <process_info><pid>4711</pid><type>C</type><used_memory>1100 MiB</used_memory></process_info>
    <process_info><pid>812</pid><type>G</type><used_memory>40 MiB</used_memory></process_info>
  </processes>`,
);

/** v13: average and instant power, the same names again for the module, event reasons, split SRAM counters. */
export const newCard = aCardXml(
  'GPU-0e300000-0000-4000-8000-000000000001',
  `<mig_mode><current_mig>Disabled</current_mig></mig_mode>
  <mig_devices>None</mig_devices>
  <gpu_recovery_action>Drain and Reset</gpu_recovery_action>
  <clocks_event_reasons>
    <clocks_event_reason_gpu_idle>Not Active</clocks_event_reason_gpu_idle>
    <clocks_event_reason_sw_power_cap>Active</clocks_event_reason_sw_power_cap>
  </clocks_event_reasons>
  ${memory}
  <utilization>
    <gpu_util>99 %</gpu_util><memory_util>30 %</memory_util><encoder_util>0 %</encoder_util><decoder_util>0 %</decoder_util>
  </utilization>
  <ecc_errors>
    <volatile>
      <sram_correctable>1</sram_correctable>
      <sram_uncorrectable_parity>2</sram_uncorrectable_parity>
      <sram_uncorrectable_secded>3</sram_uncorrectable_secded>
      <dram_correctable>4</dram_correctable><dram_uncorrectable>5</dram_uncorrectable>
    </volatile>
    <aggregate>
      <sram_correctable>0</sram_correctable><dram_correctable>N/A</dram_correctable>
      <sram_threshold_exceeded>Yes</sram_threshold_exceeded>
    </aggregate>
  </ecc_errors>
  <remapped_rows>
    <remapped_row_corr>1</remapped_row_corr><remapped_row_unc>2</remapped_row_unc>
    <remapped_row_pending>Yes</remapped_row_pending><remapped_row_failure>No</remapped_row_failure>
  </remapped_rows>
  <temperature><gpu_temp>58 C</gpu_temp><memory_temp>70 C</memory_temp></temperature>
  <gpu_power_readings>
    <average_power_draw>640.10 W</average_power_draw><instant_power_draw>655.00 W</instant_power_draw>
    <current_power_limit>700.00 W</current_power_limit>
  </gpu_power_readings>
  <module_power_readings>
    <average_power_draw>900.00 W</average_power_draw><current_power_limit>1000.00 W</current_power_limit>
  </module_power_readings>
  <clocks><sm_clock>1980 MHz</sm_clock><mem_clock>2619 MHz</mem_clock></clocks>
  <supported_clocks><supported_mem_clock><value>2619 MHz</value></supported_mem_clock></supported_clocks>
  <processes></processes>`,
);

export const vgpuGuest = aCardXml(
  'GPU-09e50000-0000-4000-8000-000000000001',
  `<gpu_virtualization_mode><virtualization_mode>VGPU</virtualization_mode></gpu_virtualization_mode>
  ${memory}
  <utilization><gpu_util>0 %</gpu_util></utilization>
  <temperature><gpu_temp>0 C</gpu_temp></temperature>
  <power_readings><power_draw>N/A</power_draw></power_readings>
  <clocks><sm_clock>0 MHz</sm_clock><mem_clock>0 MHz</mem_clock></clocks>
  <processes>N/A</processes>`,
);

export const lostCard = aCardXml(
  'GPU-10570000-0000-4000-8000-000000000001',
  `<fb_memory_usage><total>GPU is lost</total><used>GPU is lost</used></fb_memory_usage>
  <temperature><gpu_temp>GPU is lost</gpu_temp></temperature>
  <remapped_rows>GPU is lost</remapped_rows>`,
);

export const resetCard = aCardXml(
  'GPU-4e5e7000-0000-4000-8000-000000000001',
  `${memory}
  <gpu_reset_status>
    <reset_required>Yes</reset_required><drain_and_reset_recommended>No</drain_and_reset_recommended>
  </gpu_reset_status>`,
);

/** An older driver: no UUIDs and no profiles of the instances, no utilisation of the card. */
export const migCard = aCardXml(
  'GPU-0316c000-0000-4000-8000-000000000001',
  `<mig_mode><current_mig>Enabled</current_mig></mig_mode>
  <mig_devices>
    <mig_device>
      <index>0</index><gpu_instance_id>2</gpu_instance_id><compute_instance_id>0</compute_instance_id>
      <fb_memory_usage><total>19968 MiB</total><reserved>0 MiB</reserved><used>512 MiB</used><free>19456 MiB</free></fb_memory_usage>
    </mig_device>
    <mig_device>
      <index>1</index><gpu_instance_id>9</gpu_instance_id><compute_instance_id>0</compute_instance_id>
      <fb_memory_usage><total>4864 MiB</total><reserved>0 MiB</reserved><used>3 MiB</used><free>4861 MiB</free></fb_memory_usage>
    </mig_device>
  </mig_devices>
  ${memory}
  <utilization><gpu_util>N/A</gpu_util></utilization>
  <temperature><gpu_temp>41 C</gpu_temp></temperature>
  <gpu_power_readings><power_draw>120.00 W</power_draw></gpu_power_readings>
  <processes>
    <process_info>
      <gpu_instance_id>2</gpu_instance_id><compute_instance_id>0</compute_instance_id>
      <pid>99</pid><type>C</type><used_memory>500 MiB</used_memory>
    </process_info>
  </processes>`,
);
