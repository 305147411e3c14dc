"""What real cards publish: attribute names, values and capacities of the vendors' drivers, never rounded.

Data, not logic. An H100 with "80 GB" publishes 81559Mi, and a request for 80Gi must miss it as it does in a data
centre. Text values may hold the words ``{uuid} {serial} {index} {minor} {pci} {root} {numa} {mac}``, which differ from
card to card (``cards`` fills them in); ``NUMA`` and ``INDEX`` stand for the numbers themselves.

Where the names come from: NVIDIA from kubernetes-sigs/dra-driver-nvidia-gpu, AMD from ROCm/k8s-gpu-dra-driver, Gaudi
from intel/intel-resource-drivers-for-kubernetes, ConnectX from google/dranet. Huawei and Alveo have no DRA driver whose
names we could check: theirs follow their device plugins and are marked ``verified=False``. The standard attributes
resource.kubernetes.io/numaNode, pcieRoot and pciBusID and our ``linkDomain`` are added to every card.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

NUMA: Final = "#numa"
INDEX: Final = "#index"


class Version(msgspec.Struct, frozen=True):
    """A value of type version."""

    value: str


class Vendor(msgspec.Struct, frozen=True, kw_only=True):
    """How a vendor serves cards: driver and device name through DRA, resource name the old way, and the variable that
    its software reads (``variable``), holding ``value`` of each card, separated by commas."""

    name: str
    driver: str
    resource: str
    device_name: str
    variable: str
    value: str
    verified: bool = True


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One model. ``linked`` says how many cards of a node share a link domain; ``all`` is a switch between all."""

    name: str
    vendor: Vendor
    title: str
    attributes: dict[str, Any]
    capacity: dict[str, str] = {}
    linked: int | Literal["all"] = 1
    pci_vendor: str = ""
    pci_device: str = ""


NVIDIA = Vendor(
    name="nvidia",
    driver="gpu.nvidia.com",
    resource="nvidia.com/gpu",
    device_name="gpu-{minor}",
    variable="NVIDIA_VISIBLE_DEVICES",
    value="{uuid}",
)
AMD = Vendor(
    name="amd",
    driver="gpu.amd.com",
    resource="amd.com/gpu",
    device_name="gpu-{minor}-{render}",
    variable="AMD_VISIBLE_DEVICES",
    value="{index}",
)
INTEL = Vendor(
    name="intel",
    driver="gaudi.intel.com",
    resource="habana.ai/gaudi",
    device_name="{pci-dashed}-0x1060",
    variable="HABANA_VISIBLE_DEVICES",
    value="{index}",
)
HUAWEI = Vendor(
    name="huawei",
    driver="npu.huawei.com",
    resource="huawei.com/Ascend910",
    device_name="npu-{index}",
    variable="ASCEND_VISIBLE_DEVICES",
    value="{index}",
    verified=False,
)
MELLANOX = Vendor(
    name="mellanox",
    driver="dra.net",
    resource="rdma/hca",
    device_name="pci-{pci-dashed}",
    variable="PCIDEVICE_RDMA_HCA",
    value="{pci}",
)
XILINX = Vendor(
    name="xilinx",
    driver="fpga.xilinx.com",
    resource="xilinx.com/fpga-xilinx_u250_gen3x16_xdma_shell_4_1-0",
    device_name="fpga-{index}",
    variable="XILINX_VISIBLE_DEVICES",
    value="{pci}",
    verified=False,
)
VENDORS = {vendor.name: vendor for vendor in (NVIDIA, AMD, INTEL, HUAWEI, MELLANOX, XILINX)}


def _nvidia(
    name: str, product: str, architecture: str, capability: str, memory: str, linked: int | Literal["all"], device: str
) -> Card:
    return Card(
        name=name,
        vendor=NVIDIA,
        title=product,
        attributes={
            "type": "gpu",
            "uuid": "GPU-{uuid}",
            "productName": product,
            "brand": "Nvidia",
            "architecture": architecture,
            "cudaComputeCapability": Version(capability),
            "driverVersion": Version("580.95.5"),
            "cudaDriverVersion": Version("13.0.0"),
            "addressingMode": "HMM",
        },
        capacity={"memory": memory},
        linked=linked,
        pci_vendor="0x10de",
        pci_device=device,
    )


_CARDS = (
    # Memory as NVML reports it in total, which the driver publishes byte for byte.
    _nvidia("L4", "NVIDIA L4", "Ada Lovelace", "8.9.0", "23034Mi", 1, "0x27b8"),
    _nvidia("A30-24G", "NVIDIA A30", "Ampere", "8.0.0", "24576Mi", 2, "0x20b7"),
    _nvidia("A100-40G", "NVIDIA A100-SXM4-40GB", "Ampere", "8.0.0", "40960Mi", "all", "0x20b0"),
    _nvidia("A100-80G", "NVIDIA A100-SXM4-80GB", "Ampere", "8.0.0", "81920Mi", "all", "0x20b2"),
    _nvidia("H100", "NVIDIA H100 80GB HBM3", "Hopper", "9.0.0", "81559Mi", "all", "0x2330"),
    _nvidia("H200", "NVIDIA H200", "Hopper", "9.0.0", "143771Mi", "all", "0x2335"),
    _nvidia("B200", "NVIDIA B200", "Blackwell", "10.0.0", "183359Mi", "all", "0x2901"),
    Card(
        name="MI300X",
        vendor=AMD,
        title="AMD Instinct MI300X",
        attributes={
            "type": "amdgpu",
            "deviceID": "0x74a1",
            "productName": "AMD_Instinct_MI300X_OAM",
            "driverVersion": Version("6.12.12"),
            "partitionProfile": "spx_nps1",
            "numaNode": NUMA,
        },
        capacity={"memory": "196592Mi", "computeUnits": "304", "simdUnits": "1216"},
        linked="all",
        pci_vendor="0x1002",
        pci_device="0x74a1",
    ),
    Card(
        name="Gaudi3",
        vendor=INTEL,
        title="Intel Gaudi 3",
        # The driver publishes no capacity: what the model says is all there is to select by.
        attributes={"model": "Gaudi3", "pciRoot": "{root-number}", "serial": "AN{serial}", "healthy": True},
        linked="all",
        pci_vendor="0x1da3",
        pci_device="0x1060",
    ),
    Card(
        name="Ascend-910B",
        vendor=HUAWEI,
        title="Huawei Ascend 910B3",
        attributes={"type": "npu", "model": "Ascend910B3", "uuid": "NPU-{uuid}", "index": INDEX},
        capacity={"memory": "64Gi", "aiCore": "20", "aiCPU": "7"},
        linked="all",
        pci_vendor="0x19e5",
        pci_device="0xd802",
    ),
    Card(
        name="ConnectX-7",
        vendor=MELLANOX,
        title="NVIDIA ConnectX-7",
        attributes={
            "dra.net/ifName": "ens{index}np0",
            "dra.net/mac": "{mac}",
            "dra.net/pciVendor": "Mellanox Technologies",
            "dra.net/pciDevice": "MT2910 Family [ConnectX-7]",
            "dra.net/pciSubsystem": "0058",
            "dra.net/numaNode": NUMA,
            "dra.net/mtu": 9000,
            "dra.net/encapsulation": "ether",
            "dra.net/state": "up",
            "dra.net/type": "device",
            "dra.net/sriov": False,
            "dra.net/virtual": False,
            "dra.net/rdma": True,
        },
        pci_vendor="0x15b3",
        pci_device="0x1021",
    ),
    Card(
        name="Alveo-U250",
        vendor=XILINX,
        title="AMD Alveo U250",
        attributes={
            "type": "fpga",
            "model": "Alveo U250",
            "shell": "xilinx_u250_gen3x16_xdma_shell_4_1",
            "serial": "{serial}",
        },
        capacity={"memory": "64Gi", "luts": "1728k", "dspSlices": "12288"},
        pci_vendor="0x10ee",
        pci_device="0x5004",
    ),
)
CARDS = {card.name: card for card in _CARDS}
