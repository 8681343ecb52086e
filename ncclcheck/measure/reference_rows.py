"""The rows of the reference table: bus bandwidth in GB/s as nccl-tests defines it, out-of-place unless noted.

Read from public files. A row is three lines: GPU, GPUs per node, nodes, fabric, grade, cards of a node x Gbit/s, date;
then the values; then source and note. `-`: the source does not state it. `best`: the best of a sweep. Where a
source gives a range over equal machines, the row is its lower end.
"""

from __future__ import annotations

TABLE = """
A100 SXM4 | 8 | 1 | nvlink | A | - | -
  all_reduce 1M=18 1G=229 16G=234.89
  stas00/ml-engineering network/README.md:1215-1242 | -
A100 SXM4 | 8 | 1 | nvlink | A | - | -
  all_reduce 8G=235.26; all_gather 8G=223.4; reduce_scatter 8G=231.5; all_to_all 8G=224.3; broadcast 8G=232.8
  microsoft/superbenchmark tests/data/nccl_*.log | -
A100 SXM4 | 8 | 1 | nvlink | B | - | -
  all_reduce 1M=36.2 1G=228.1 8G=231.58
  Azure/AI-benchmarking-guide Azure_Results/ND_A100_v4_results.md:105 | in-place
H100 | 8 | 1 | nvlink | A | - | -
  all_reduce best=481.19
  xxrjun/nccl-tests-cluster example-cluster01 single-node summary.csv | the slowest of ten nodes, float64, with NVLS
H100 | 4 | 1 | nvlink | A | - | -
  all_reduce best=367.2
  xxrjun/nccl-tests-cluster example-cluster01 single-node summary.csv | the slowest of ten nodes, ring
H100 | 8 | 1 | nvlink | A | - | -
  all_gather 16G=365.2; reduce_scatter 16G=364.7; all_to_all 16G=347.8; send_recv 16G=367
  xxrjun/nccl-tests-cluster example-cluster01 single-node summary.csv | the slowest of ten nodes
H100 | 8 | 1 | nvlink | B | - | -
  all_reduce 1M=43.7 1G=466.35 8G=478.87
  Azure/AI-benchmarking-guide Azure_Results/ND_H100_v5_results.md:93-106 | in-place
H200 | 8 | 1 | nvlink | A | - | -
  all_reduce 1M=39.9 128M=401.9 1G=463.6 16G=482.26
  stas00/ml-engineering network/README.md:1253-1277 | with NVLS
H200 | 8 | 1 | nvlink | B | - | -
  all_gather 16G=361.4; reduce_scatter 16G=362.9
  stas00/ml-engineering network/README.md:976-981 | -
H200 | 8 | 1 | nvlink | B | - | -
  all_reduce 1M=53 1G=467.6 8G=479.98
  Azure/AI-benchmarking-guide Azure_Results/ND_H200_v5_results.md:93-106 | in-place
H200 | 4 | 1 | nvlink | B | - | -
  all_reduce 8G=363.3
  stas00/ml-engineering network/README.md:923-931 | -
H200 | 5 | 1 | nvlink | B | - | -
  all_reduce 8G=414.2
  stas00/ml-engineering network/README.md:923-931 | -
H200 | 6 | 1 | nvlink | B | - | -
  all_reduce 8G=435.6
  stas00/ml-engineering network/README.md:923-931 | -
H200 | 7 | 1 | nvlink | B | - | -
  all_reduce 8G=460
  stas00/ml-engineering network/README.md:923-931 | -
B200 | 4 | 1 | nvlink | B | - | -
  all_reduce 8G=673.2
  stas00/ml-engineering network/README.md:933-941 | NCCL 2.27.7
B200 | 5 | 1 | nvlink | B | - | -
  all_reduce 8G=677.8
  stas00/ml-engineering network/README.md:933-941 | NCCL 2.27.7
B200 | 6 | 1 | nvlink | B | - | -
  all_reduce 8G=778.2
  stas00/ml-engineering network/README.md:933-941 | NCCL 2.27.7
B200 | 7 | 1 | nvlink | B | - | -
  all_reduce 8G=811.2
  stas00/ml-engineering network/README.md:933-941 | NCCL 2.27.7
B200 | 8 | 1 | nvlink | B | - | -
  all_reduce 8G=838
  stas00/ml-engineering network/README.md:933-941 | NCCL 2.27.7
B200 | 8 | 1 | nvlink | A | - | -
  all_reduce 1M=36.1 1G=723.3 16G=845.67
  stas00/ml-engineering network/README.md:1402-1423 | -
GB200 | 4 | 1 | nvlink | B | - | -
  all_reduce 1M=80.5 1G=646.9 8G=679.61
  Azure/AI-benchmarking-guide Azure_Results/ND_GB200_v6_results.md | in-place, NCCL 2.25.1
B300 | 8 | 1 | nvlink | D | - | -
  all_reduce best=845
  NVIDIA/nccl#2140 | with NVLS; ring 695
H800 | 8 | 1 | nvlink | D | - | -
  all_reduce best=215
  NVIDIA/nccl#1374 | reduced NVLink
V100 | 8 | 1 | nvlink | C | - | 2024
  all_reduce best=122
  NVIDIA GTC24 S62129, slide | -
H100 | 8 | 2 | rdma | A | 32x100 | -
  all_reduce 1M=15.95 128M=289.2 1G=436.9 2G=443.7 16G=487.1
  aws-samples/awsome-distributed-training micro-benchmarks/nccl-tests/README.md:211-225 | AWS p5, EFA
H100 | 8 | 2 | rdma | A | 32x100 | 2024-07-19
  all_reduce 128M=287.9 1G=440 8G=479.4 16G=487.9
  KeitaW/p5-nccl-test-2024-07-19 nccl-test-output-v2.22.3-1.log | AWS p5, NCCL 2.22.3
H100 | 8 | 2 | rdma | A | 32x100 | -
  all_reduce 128M=129 1G=313.3 2G=437.8
  aws-samples/awsome-distributed-training micro-benchmarks/nccl-tests/README.md:274-278 | AWS p5, EKS
H100 | 8 | 2 | rdma | B | 32x100 | -
  all_reduce 16G=487.87; all_gather 16G=338.57; all_to_all 16G=79.11
  NVIDIA/cluster-readiness-engine docs/api-reference/validation-results.md | AWS p5
A100 | 8 | 2 | rdma | A | 4x100 | -
  all_reduce 1M=6.35 128M=64.3 1G=76.8 2G=78.3
  aws-samples/awsome-distributed-training micro-benchmarks/nccl-tests/README.md:176-187 | AWS p4de, EFA
H200 | 8 | 4 | rdma | B | 16x200 | -
  all_reduce 4G=364.9
  stas00/ml-engineering network/README.md:1182 | AWS p5en, ring; a forced NVLSTree gave 310
B200 | 8 | 4 | rdma | A | 8x400 | -
  all_reduce 1M=5.4 64M=156.7 1G=362 4G=377.3 16G=381.8
  stas00/ml-engineering network/README.md:1402-1423 | AWS p6-b200
H100 | 8 | 2 | rdma | A | - | -
  all_reduce 1G=449.5 16G=471.2
  oracle-quickstart/oci-hpc documentation/Troubleshooting.md:173-177 | OCI, RoCE, NCCL 2.23.4
H100 | 8 | 8 | rdma | A | - | -
  all_reduce 512M=356 1G=366 8G=386.6
  coreweave/nccl-tests README.md:149-153 | with SHARP
H100 | 1 | 10 | rdma | A | - | -
  all_reduce best=48.9
  xxrjun/nccl-tests-cluster example-cluster01 multi-node summary.csv | -
H100 | 2 | 10 | rdma | A | - | -
  all_reduce best=98.3
  xxrjun/nccl-tests-cluster example-cluster01 multi-node summary.csv | -
H100 | 4 | 10 | rdma | A | - | -
  all_reduce best=196.4
  xxrjun/nccl-tests-cluster example-cluster01 multi-node summary.csv | -
H100 | 8 | 10 | rdma | A | - | -
  all_reduce 1G=344.9 2G=337 4G=313.9 16G=320.5; all_gather 16G=324.3; reduce_scatter 16G=323.4; all_to_all 16G=50.4
  xxrjun/nccl-tests-cluster logs/nccl_N10_G8.log | -
H100 | 8 | 2 | rdma | A | - | -
  all_to_all best=91.5
  xxrjun/nccl-tests-cluster pairwise summary.csv | the slowest of 45 pairs
H100 | 1 | 2 | rdma | A | - | -
  send_recv best=39.9
  xxrjun/nccl-tests-cluster pairwise summary.csv | the median of 45 pairs, from 39.1 to 44.2
H100 | 8 | 4 | rdma | B | - | -
  all_reduce 8G=330.9; all_gather 8G=323.5; broadcast 8G=286.3
  aigatech/vpbenchmarking README.md | Voltage Park
H100 | 8 | 4 | rdma | D | - | -
  all_reduce best=365.8
  NVIDIA/nccl-tests#309 | -
H100 | 8 | 2 | tcp | A | 4x200 | -
  all_gather 1M=0.99 128M=64.8 512M=70.9
  GoogleCloudPlatform/cluster-toolkit examples/gke-a3-highgpu/multi-node-test-plan.md:120-133 | GCP A3 High, TCPX
H100 | 8 | 2 | tcp | A | 8x200 | -
  all_gather 1M=7.3 128M=156 1G=182 8G=188.7
  GoogleCloudPlatform/cluster-toolkit examples/gke-a3-megagpu/README.md:114-148 | GCP A3 Mega, TCPXO
H100 | 8 | 2 | tcp | B | 8x200 | -
  all_reduce 16G=337.1; all_gather 16G=189.3; all_to_all 16G=40.2
  NVIDIA/cluster-readiness-engine docs/api-reference/validation-results.md | GCP A3 Mega, TCPXO
H200 | 8 | 2 | rdma | A | - | -
  all_gather 1M=12.3 128M=254 1G=324.1 8G=328.9
  GoogleCloudPlatform/cluster-toolkit examples/gke-consumption-options/dws-flex-start/README.md:156-183 | GCP A3 Ultra
A100 | 4 | 2 | rdma | A | 2x200 | -
  all_reduce 1G=36.1; all_gather 1G=35.9; all_to_all 1G=9.5
  argonne-lcf/alcf-nccl-tests results_polaris/nccl_2_18 | Polaris, Slingshot with OFI
A100 | 4 | 8 | rdma | A | 2x200 | -
  all_reduce 1G=36.1
  argonne-lcf/alcf-nccl-tests results_polaris/nccl_2_18 | Polaris, Slingshot with OFI
A100 | 4 | 256 | rdma | A | 2x200 | -
  all_reduce 1G=30.9
  argonne-lcf/alcf-nccl-tests results_polaris/nccl_2_21 | Polaris, NCCL 2.21
A100 | 4 | 540 | rdma | A | 2x200 | -
  all_reduce 1G=29.1
  argonne-lcf/alcf-nccl-tests results_polaris/nccl_2_21 | Polaris, NCCL 2.21
A100 SXM4 | 8 | 2 | rdma | A | - | 2024-10-15
  all_reduce 1M=23.1 128M=176.1 1G=178.2; all_gather 1G=177.4; all_to_all 1G=39.9
  argonne-lcf/alcf-nccl-tests results_sophia/n2.g8 | Sophia, DGX A100
GB200 | 4 | 18 | mnnvl | A | - | -
  all_reduce 1G=681 4G=839 8G=834.6
  coreweave/nccl-tests README.md:268-272 | NVL72, NCCL 2.26.2
GB200 | 4 | 36 | mnnvl | A | - | -
  all_reduce 8G=793 16G=810
  coreweave/nccl-tests README.md:285-290 | two racks
GB200 | 4 | 360 | mnnvl | A | - | -
  all_reduce 8G=381.5 16G=405.7
  coreweave/nccl-tests README.md:302-307 | 20 racks
GB200 | 4 | 4 | mnnvl | B | - | -
  all_reduce 16G=882.5; all_gather 16G=609.3; all_to_all 16G=568.7
  NVIDIA/cluster-readiness-engine docs/api-reference/validation-results.md | AWS
GB200 | 4 | 4 | rdma | B | - | -
  all_reduce 16G=191.4; all_gather 16G=191.3; all_to_all 16G=58.2
  NVIDIA/cluster-readiness-engine docs/api-reference/validation-results.md | AWS, NVLink across nodes off
GB300 | 4 | 8 | mnnvl | B | - | -
  all_reduce 16G=923.3; all_gather 16G=698.7; all_to_all 16G=678.6
  NVIDIA/cluster-readiness-engine docs/api-reference/validation-results.md | AWS
GB300 | 4 | 8 | rdma | B | - | -
  all_reduce 16G=376; all_gather 16G=365.7; all_to_all 16G=85.6
  NVIDIA/cluster-readiness-engine docs/api-reference/validation-results.md | AWS, NVLink across nodes off
GB200 | 4 | 2 | mnnvl | B | - | -
  all_reduce 16G=838.1; all_gather 16G=680.2; all_to_all 16G=683.8
  NVIDIA/cluster-readiness-engine docs/api-reference/validation-results.md | GCP
RTX PRO 6000 | 8 | 1 | pcie | D | - | -
  all_reduce best=41.1
  voipmonitor/rtx6kpro hardware/pcie-bandwidth.md:131-144 | three switches
RTX 5090 | 8 | 1 | pcie | D | - | -
  all_reduce best=28
  NVIDIA/nccl#1639 | -
RTX 5090 | 4 | 1 | pcie | D | - | -
  all_reduce best=35
  NVIDIA/nccl#1639 | -
RTX 4090 | 4 | 1 | pcie | D | - | -
  all_reduce 64M=12.76
  tinygrad/open-gpu-kernel-modules#22 | with a driver that allows P2P
A100 PCIe | 2 | 1 | pcie | A | - | -
  all_reduce best=14.4
  thomaslie210/NCCL_Test_Results NCCL_Benchmarks | 14.4 to 19.7 by slot and switch
A100 PCIe | 1 | 2 | rdma | A | - | -
  all_reduce best=12.6
  thomaslie210/NCCL_Test_Results NCCL_Benchmarks | 12.6 to 14.8; 6.0 without GPUDirect RDMA
H100 PCIe | 2 | 1 | nvlink | D | - | -
  all_reduce best=115
  NVIDIA/nccl#1161, NVIDIA/nccl-tests#194 | NVLink bridge
V100 | 8 | 4 | tcp | D | 1x100 | -
  all_reduce best=4
  NVIDIA/nccl#450 | 4 to 6; 1.1 to 1.5 with a bad setting
"""
