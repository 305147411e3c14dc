"""What pods may use that this scheduler does not implement: such a pod is never bound, and is told which field it is.

Binding it anyway would break a promise that the field makes (a volume on the right node, a gang that starts together).

Upstream counterpart: plugins/volumebinding, volumezone, volumerestrictions, nodevolumelimits, gangscheduling.
"""

from __future__ import annotations

from kubedra.api import core_v1

PLUGIN = "Unsupported"
_VOLUMES = {
    "persistent_volume_claim": "persistentVolumeClaim",
    "ephemeral": "ephemeral",
    "csi": "csi",
    "aws_elastic_block_store": "awsElasticBlockStore",
    "azure_disk": "azureDisk",
    "cinder": "cinder",
    "gce_persistent_disk": "gcePersistentDisk",
    "iscsi": "iscsi",
    "rbd": "rbd",
}


def unsupported_field(pod: core_v1.Pod) -> str | None:
    """The sentence about the first field that stands in the way; None when there is none."""
    for index, volume in enumerate(pod.spec.volumes):
        for attribute, name in _VOLUMES.items():
            if getattr(volume, attribute) is not None:
                return (
                    f"spec.volumes[{index}].{name}: kubedra's scheduler does not bind volumes or count their limits;"
                    f" use emptyDir, hostPath, configMap, secret or projected for volume {volume.name},"
                    " or another scheduler (spec.schedulerName)"
                )
    if pod.spec.scheduling_group is not None:
        return (
            "spec.schedulingGroup: kubedra's scheduler does not schedule pod groups together;"
            " remove the field or use another scheduler (spec.schedulerName)"
        )
    return None
