"""Random machines and settings for the differential test: odd names, states, addresses and values."""

from __future__ import annotations

from random import Random

from tests.nccl.library_oracle import ETC, HOME, NAMED, PASSWD_HOME, Question

_USUAL = (
    "eth0",
    "eth1",
    "eth10",
    "eth1.100",
    "ens3",
    "enp3s0f0",
    "ib0",
    "ibs10",
    "docker0",
    "dockerx",
    "br-abc",
    "virbr0",
    "virbr1",
    "lo1",
    "loop0",
    "cni0",
)
_ODD = ("veth1", "bond0", "tailscale0", "usb0", "^lo", "=eth0", "e")
NAMES = (*_USUAL, *_ODD)
_V4 = ("10.0.0", "10.0.1", "10.1.0", "172.17.0", "172.18.0", "192.168.122", "169.254.3")


def network(random: Random) -> list[str]:
    """Lines for `ip -batch` that build the interfaces of one world."""
    lines = [f"link set lo {'up' if random.random() < 0.9 else 'down'}"]
    if random.random() < 0.2:
        lines.append(f"addr add 10.7.7.{random.randint(1, 99)}/32 dev lo")
    for number, name in enumerate(random.sample(NAMES, random.randint(0, 7))):
        lines += _interface(random, name, number)
    return lines


def _interface(random: Random, name: str, number: int) -> list[str]:
    kind = random.choice(("bridge", "veth", "veth", "veth"))
    peer = f"p{number}"
    lines = [f"link add {name} type {kind}" + (f" peer name {peer}" if kind == "veth" else "")]
    if random.random() < 0.6:
        lines.append(f"link set {name} addrgenmode none")
    if kind == "veth" and random.random() < 0.8:
        lines.append(f"link set {peer} addrgenmode none up")
    if random.random() < 0.1:
        lines.append(f"link set {name} mode dormant")
    if random.random() < 0.85:
        lines.append(f"link set {name} up")
    lines += [_ipv4(random, name) for _ in range(random.choice((0, 1, 1, 1, 2, 3)))]
    for _ in range(random.choice((0, 0, 1, 2))):
        prefix = random.choice(("fd00:1::", "fd00:2::", "fe80::"))
        lines.append(f"addr add {prefix}{random.randint(1, 0xFFFF):x}/64 dev {name} nodad")
    return lines


def _ipv4(random: Random, name: str) -> str:
    address = f"{random.choice(_V4)}.{random.randint(1, 250)}/{random.choice((8, 16, 24, 24, 30, 32))}"
    label = f" label {name}:{random.randint(1, 3)}" if random.random() < 0.2 else ""
    return f"addr add {address} dev {name}{label}"


def question(random: Random) -> Question:
    """One environment with its config files. FOLDER in a value is the world's folder."""
    environment: dict[str, str] = {}
    if random.random() < 0.7:
        environment["NCCL_SOCKET_IFNAME"] = ifname(random)
    if random.random() < 0.25:
        family = random.choice(("AF_INET", "AF_INET6", "AF_INET6", "ipv6", "", "AF_INET6 "))
        environment["NCCL_SOCKET_FAMILY"] = family
    if random.random() < 0.2:
        environment["NCCL_COMM_ID"] = comm_id(random)
    if random.random() < 0.8:
        environment["HOME"] = "FOLDER/home"
    if random.random() < 0.3:
        environment["NCCL_CONF_FILE"] = random.choice(("FOLDER/" + NAMED, "FOLDER/nosuch.conf", ""))
    files = {name: config_file(random) for name in (NAMED, HOME, PASSWD_HOME, ETC) if random.random() < 0.3}
    return Question(environment, files)


def ifname(random: Random) -> str:
    """A value of NCCL_SOCKET_IFNAME: names, prefixes, modes, ports, blanks, empty entries."""
    if random.random() < 0.1:
        return random.choice(("", "e", "^", "=", "^=", ",,", "^,", "=,", ":5", "^:5", "^=:5,", "10.0.0.1"))
    entries = []
    for _ in range(random.choice((1, 1, 1, 2, 3, 18))):
        name = random.choice((*NAMES, "lo", "docker", "virbr"))
        entry = name[: random.randint(1, len(name))] if random.random() < 0.3 else name
        entry = random.choice(("",) * 12 + (" ", "^", "=")) + entry
        entries.append(entry + random.choice(("",) * 8 + (":1", ":", ":2:3:4", " ")))
    mode = random.choice(("", "", "", "^", "^", "=", "^=", "=^"))
    return mode + random.choice((",",) * 9 + (",,",)).join(entries)


def comm_id(random: Random) -> str:
    """A value of NCCL_COMM_ID that no resolver is needed for."""
    fixed = ("", "x", ":5", "[::1]:5", "[fd00:1::9", "127.0.0.9:5", "10.1:5", "0x0a000009:5", "1.2.3.4")
    if random.random() < 0.3:
        return random.choice(fixed)
    if random.random() < 0.3:
        return f"[{random.choice(('fd00:1::9', 'fd00:2::9', 'fe80::9%eth0', 'fe80::9%ib0', 'fe80::9'))}]:5000"
    return f"{random.choice(_V4)}.{random.randint(1, 250)}:5000"


def config_file(random: Random) -> str:
    """A config file with comments, repeated names, blanks, quotes and Windows line ends."""
    lines = ["# a comment", "", "nonsense", "NCCL_DEBUG=INFO"]
    for _ in range(random.randint(0, 3)):
        setting = random.choice(("NCCL_SOCKET_IFNAME=", "NCCL_SOCKET_IFNAME=", "NCCL_SOCKET_FAMILY=AF_INET6"))
        value = ifname(random) if setting.endswith("=") else ""
        before = random.choice(("",) * 8 + ("#", "# ", " ", "export "))
        lines.append(before + setting + value + random.choice(("",) * 8 + ("\r", " ", '"')))
    if random.random() < 0.1:
        lines.append(f"NCCL_COMM_ID={comm_id(random)}")
    random.shuffle(lines)
    return "\n".join(lines) + random.choice(("\n", ""))
