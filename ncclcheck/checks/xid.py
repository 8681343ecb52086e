"""NVIDIA's Xid errors by what they ask for, and where they come from."""

from __future__ import annotations

from typing import Literal, TypeAlias

Demand: TypeAlias = Literal["nothing", "application", "reset", "reboot", "look"]

# Of NVIDIA's Xid catalogue, docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html, column "Resolution Bucket
# (Immediate Action)", for Ampere and newer, read 2026-11: IGNORE is "nothing", RESTART_APP "application", RESET_GPU
# "reset", RESTART_BM and RESTART_VM "reboot", what needs a person (CONTACT_SUPPORT, CHECK_MECHANICALS, UPDATE_SWFW,
# CHECK_UVM) "look". Numbers that the catalogue calls unused are left out: such an error is unknown here.
_NOTHING = (14, 37, 38, 43, 44, 63, 66, 67, 92, 93, 106, 107, 108, 121, 137, 141, 152, 153, 157, 160, 161)
_APPLICATION = (
    8, 11, 13, 25, 31, 32, 39, 40, 41, 60, 68, 69, 70, 71, 72, 75, 76, 77, 80, 82, 83, 84, 85, 86, 88, 89, 94,
    *range(96, 106), *range(126, 136), 139,
)  # fmt: skip
_RESET = (46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158)
_REBOOT = (79, 151)
_LOOK = (54, 78, 142, 159)
# Its work flows, shortened: 48 (double bit ECC), 74 and 144 to 150 (NVLink) need a reset or more. 45 is what is left of
# a process that was ended, whatever ended it.
_WORKFLOW_RESET = (48, 74, *range(144, 151))
_WORKFLOW_NOTHING = (45,)
DEMANDS: dict[int, Demand] = {
    **dict.fromkeys((*_NOTHING, *_WORKFLOW_NOTHING), "nothing"),
    **dict.fromkeys(_APPLICATION, "application"),
    **dict.fromkeys((*_RESET, *_WORKFLOW_RESET), "reset"),
    **dict.fromkeys(_REBOOT, "reboot"),
    **dict.fromkeys(_LOOK, "look"),
}
RECOVERY_CHANGED = 154  # its text says what the driver demands from then on
# In the words of the catalogue: "None", "Drain P2P", "Drain and Reset", "GPU Reset Required", "Node Reboot Required".
_RECOVERY: tuple[tuple[str, Demand], ...] = (
    ("(None)", "nothing"),
    ("(Node Reboot Required)", "reboot"),
    ("(GPU Reset Required)", "reset"),
    ("(Drain and Reset)", "reset"),
    ("(Drain P2P)", "reset"),
)


def xid_demand(number: int, text: str) -> Demand | None:
    """Return the action that an Xid asks for; None for one that NVIDIA's catalogue did not list at the time."""
    if number == RECOVERY_CHANGED:
        # "changed from 0x1 (GPU Reset Required) to 0x0 (None)": the last one is what is.
        places = [(text.rfind(words), demand) for words, demand in _RECOVERY if words in text]
        return max(places)[1] if places else None
    return DEMANDS.get(number)


# NVIDIA Fabric Manager User Guide, appendix "NVIDIA NVSwitch SXid errors", read 2026-11. The driver itself writes
# "Fatal" or "Non-fatal"; a fatal one needs a reset of all GPUs and NVSwitches. Of the non-fatal ones nearly all are
# errors that were corrected; these ask for something all the same. "Other notable" ones come without either word.
_SXID_DEMANDS: dict[int, Demand] = {
    11004: "reboot",  # ingress invalid ACL: traffic of the GPU stalls; restart the machine
    12028: "reboot",  # egress non-posted PRIV error: the same
    19084: "reset",  # AN1 heartbeat timeout
    20012: "look",  # broken or inconsistent connection: check the links mechanically
    10001: "look",  # host PRIV error: may be followed by fatal ones
    10002: "look",  # host PRIV timeout: the same
    10003: "reset",  # host unhandled interrupt: never expected
    10004: "look",  # thermal event: see whether the system is cooled well enough
}


def sxid_demand(number: int, text: str) -> Demand | None:
    """Return the action that an NVSwitch error asks for, by its number and by the driver's wording; None if unknown."""
    words = text.lower()
    if "fatal" in words.replace("non-fatal", ""):
        return "reset"
    if number in _SXID_DEMANDS:
        return _SXID_DEMANDS[number]
    return "nothing" if "non-fatal" in words else None
