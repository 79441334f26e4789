"""``orderkit stations`` as a process: what goes wrong stays readable and hurts nobody else."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import crossplane.function.proto.v1.run_function_pb2 as fnv1
import grpc
import pytest
from functionwire import (
    V1BETA1,
    Client,
    FunctionServer,
    refused_with,
    request_message,
    station_input,
)

from compositions.station import (
    Ready,
    Resource,
    Result,
    Selector,
    Severity,
    State,
    StationRequest,
    StationResponse,
)
from ground.objects.kube_objects import Condition

HASTY_S = 1.0
"""What the hasty server gives a station: nothing but a station that hangs may be asked of it."""
PATIENT_S = 100.0
STATIONS = {
    "echo": """
    response = StationResponse.to(request, ttl_s=90.5)
    response.want("thing", {"kind": "Thing", "spec": request.xr["spec"]}, ready=Ready.FALSE)
    response.merge_status({"seen": sorted(request.required)})
    response.add_condition("Measured", "False", "NoRecord", "nothing yet")
    response.require("settings", "v1", "ConfigMap", match_name="x", namespace="there")
    response.require("all", "v1", "ConfigMap", match_labels={"a": "b"})
    response.warning("look here", reason="Odd")
    response.context["note"] = [1, 2.5, None]
    return response
""",
    "hangs": """
    while True:
        pass
""",
    "sleeps": """
    import time
    print("asleep", flush=True)
    time.sleep(request.xr["spec"]["s"])
    return StationResponse.to(request)
""",
    "dies": """
    import os
    os._exit(3)
""",
    "exits": """
    raise SystemExit("enough")
""",
    "raises": """
    return request.xr["spec"]["missing"]
""",
    "greedy": """
    return bytearray(2 << 30)
""",
    "reads": """
    response = StationResponse.to(request)
    response.merge_status({"read": open("/etc/passwd").read()})
    return response
""",
    "connects": """
    import socket
    socket.create_connection(("127.0.0.1", 9))
""",
    "forks": """
    import os
    os.fork()
""",
    "kills": """
    import os, signal
    os.kill(os.getppid(), signal.SIGKILL)
""",
    "environment": """
    import os
    response = StationResponse.to(request)
    response.merge_status({"environment": " ".join(os.environ)})
    return response
""",
    "prints": """
    import sys, os
    print("printed by a station")
    sys.stdout.write("x" * 100)
    os.write(1, b"raw")
    return StationResponse.to(request)
""",
    "dates": """
    import datetime
    response = StationResponse.to(request)
    response.want("thing", {"kind": "Thing", "at": datetime.date(2026, 1, 1)})
    return response
""",
    "infinite": """
    response = StationResponse.to(request)
    response.merge_status({"ratio": float("inf")})
    return response
""",
    "surrogate": r"""
    response = StationResponse.to(request)
    response.want("thing", {"kind": "Thing", "text": "\ud800"})
    return response
""",
    "huge": """
    response = StationResponse.to(request)
    response.want("thing", {"kind": "Thing", "text": "x" * (5 << 20)})
    return response
""",
    "never": """
    response = StationResponse.to(request, ttl_s=float("nan"))
    return response
""",
}


def write_stations(folder: Path) -> Path:
    for name, body in STATIONS.items():
        place = folder / name
        place.mkdir(parents=True)
        head = "from orderkit.stations import Ready, StationResponse\n\n\ndef station(request):"
        (place / "station.py").write_text(f"{head}{body}")
    broken = folder / "broken"
    broken.mkdir()
    (broken / "station.py").write_text("import no_such_module\n")
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FunctionServer]:
    with serving(tmp_path_factory.mktemp("function"), PATIENT_S) as server:
        yield server


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[Client]:
    with serving(tmp_path, HASTY_S) as server, Client.plain(server.address) as client:
        yield client


def serving(folder: Path, timeout_s: float) -> FunctionServer:
    stations = write_stations(folder / "stations")
    arguments = ("--stations", str(stations), "--insecure", "--timeout", str(timeout_s))
    return FunctionServer(folder / "log", *arguments, "--at-once", "3")


@pytest.fixture
def client(server: FunctionServer) -> Iterator[Client]:
    with Client.plain(server.address) as client:
        yield client


def request_for(station: str, **spec: object) -> StationRequest:
    xr = {"apiVersion": "example.org/v1", "kind": "App", "metadata": {"name": "a"}, "spec": spec}
    return StationRequest(
        observed=State(Resource(xr)),
        desired=State(Resource(), {"kept": Resource({"kind": "Kept"}, Ready.TRUE)}),
        context={"before": "kept"},
        input=dict(station_input(station)),
        required={"found": ({"kind": "Found"},), "missing": ()},
    )


def fatal(response: StationResponse) -> str:
    """Return the only result's message; it is fatal."""
    (result,) = response.results
    assert result.severity is Severity.FATAL
    return result.message


def test_everything_a_station_says_arrives(client: Client) -> None:
    response = client.ask(request_for("echo", size=3, name="é"))

    assert response.desired.resources["kept"] == Resource({"kind": "Kept"}, Ready.TRUE)
    thing = {"kind": "Thing", "spec": {"size": 3, "name": "é"}}
    assert response.desired.resources["thing"] == Resource(thing, Ready.FALSE)
    assert response.desired.composite.resource == {"status": {"seen": ["found", "missing"]}}
    assert response.conditions == [Condition("Measured", "False", "NoRecord", "nothing yet")]
    assert response.requirements == {
        "settings": Selector("v1", "ConfigMap", "x", {}, "there"),
        "all": Selector("v1", "ConfigMap", "", {"a": "b"}, None),
    }
    assert response.results == [Result(Severity.WARNING, "look here", "Odd")]
    assert response.context == {"before": "kept", "note": [1, 2.5, None]}
    assert response.ttl_s == 90.5


def test_the_tag_comes_back_and_numbers_are_doubles_on_the_wire(client: Client) -> None:
    reply = client.message(request_message(request_for("echo", size=3), tag="t-1"))

    assert reply.meta.tag == "t-1"
    thing = reply.desired.resources["thing"].resource
    assert thing.fields["spec"].struct_value.fields["size"].number_value == 3.0


def test_an_older_crossplane_is_answered_the_same(server: FunctionServer, client: Client) -> None:
    with Client.plain(server.address, V1BETA1) as older:
        assert older.ask(request_for("echo", size=1)) == client.ask(request_for("echo", size=1))


@pytest.mark.parametrize(
    ("station", "text"),
    [
        ("raises", "station \"raises\" failed: KeyError: 'missing'"),
        ("nobody", 'no station "nobody" in this pack; it has: broken, connects'),
        ("broken", "No module named 'no_such_module'"),
        ("dies", 'the process of station "dies" ended'),
        ("exits", 'the process of station "exits" ended'),
        ("greedy", 'station "greedy" failed: MemoryError'),
        ("dates", "thing.at is a date, which no Kubernetes object can hold"),
        ("infinite", "the XR.status.ratio is inf, which JSON cannot write"),
        ("surrogate", 'station "surrogate" returned data that cannot be sent'),
        ("huge", 'station "huge" answers with 52430'),
        ("never", 'station "never" returned data that cannot be sent'),
    ],
)
def test_what_a_station_does_wrong_is_a_fatal_result(
    client: Client, station: str, text: str
) -> None:
    assert text in fatal(client.ask(request_for(station)))
    assert client.ask(request_for("echo")).context["before"] == "kept"


@pytest.mark.parametrize(
    ("station", "text"),
    [
        ("reads", "Permission denied: '/etc/passwd'"),
        ("connects", "PermissionError"),
        ("forks", "PermissionError"),
        ("kills", "PermissionError"),
    ],
)
def test_a_station_reaches_nothing_outside(client: Client, station: str, text: str) -> None:
    assert text in fatal(client.ask(request_for(station)))


def test_a_station_sees_no_environment(client: Client) -> None:
    status = client.ask(request_for("environment")).desired.composite.resource["status"]
    assert set(status["environment"].split()) <= {"LC_CTYPE", "PYTHONUNBUFFERED"}


def test_a_station_that_hangs_is_given_up_each_time(hasty: Client) -> None:
    for _ in range(2):
        told = fatal(hasty.ask(request_for("hangs")))
        assert f'station "hangs" gave no answer within {HASTY_S:g} s' in told


def test_what_a_station_prints_is_no_part_of_its_answer(
    server: FunctionServer, client: Client
) -> None:
    assert client.ask(request_for("prints")).results == []
    server.daemon.wait_until(lambda: "raw" in server.daemon.text(), timeout_s=90)


@pytest.mark.parametrize("wrong", [{}, {"kind": "Other"}, {"name": 5}], ids=str)
def test_an_input_that_names_no_station_is_told(client: Client, wrong: dict[str, object]) -> None:
    given = {**station_input("echo"), **wrong} if wrong else {}
    request = StationRequest(observed=State(), input=given)

    assert "the step's input is not a Station" in fatal(client.ask(request))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e300])
def test_a_number_no_object_can_hold_is_refused_or_kept(client: Client, number: float) -> None:
    reply = client.message(request_message(request_for("echo", size=number)))

    if number == 1e300:
        spec = reply.desired.resources["thing"].resource.fields["spec"].struct_value
        assert spec.fields["size"].number_value == number
    else:
        assert "observed.composite cannot be read" in reply.results[0].message


def test_bytes_that_are_no_request_get_a_fatal_result(client: Client) -> None:
    reply = fnv1.RunFunctionResponse.FromString(client.send(b"\xff\xff\xff"))

    assert reply.results[0].severity == fnv1.SEVERITY_FATAL
    assert "the request cannot be read" in reply.results[0].message


def test_a_message_beyond_the_limit_is_refused_and_the_server_lives(client: Client) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        client.ask(request_for("echo", text="x" * (5 << 20)))

    assert refused_with(refused.value) is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert client.ask(request_for("echo")).context["before"] == "kept"


def test_a_station_that_hangs_does_not_delay_the_others(client: Client) -> None:
    """Six requests hang, three may run at once: the other station is answered meanwhile."""
    hanging = [client.begin(request_message(request_for("hangs"))) for _ in range(6)]
    for _ in range(10):
        assert client.ask(request_for("echo")).context["before"] == "kept"

    assert not any(each.done() for each in hanging)
    for each in hanging:
        each.cancel()
    assert client.ask(request_for("echo")).context["before"] == "kept"


def test_a_caller_that_gives_up_frees_its_place(client: Client) -> None:
    for _ in range(4):
        with pytest.raises(grpc.RpcError) as late:
            client.send(
                request_message(request_for("sleeps", s=60)).SerializeToString(), timeout_s=0.3
            )
        assert refused_with(late.value) is grpc.StatusCode.DEADLINE_EXCEEDED

    assert client.ask(request_for("sleeps", s=0)).results == []


def test_sigterm_answers_what_has_begun_and_takes_nothing_new(tmp_path: Path) -> None:
    stations = write_stations(tmp_path / "stations")
    server = FunctionServer(tmp_path / "log", "--stations", str(stations), "--insecure")
    replies: list[StationResponse] = []
    with server, Client.plain(server.address) as client:
        client.ask(request_for("echo"))
        slow = threading.Thread(
            target=lambda: replies.append(client.ask(request_for("sleeps", s=2)))
        )
        slow.start()
        server.daemon.wait_until(lambda: "asleep" in server.daemon.text(), timeout_s=90)
        os.kill(server.daemon.pid, signal.SIGTERM)
        slow.join()
        server.daemon.stop()  # waits
        with pytest.raises(grpc.RpcError):
            client.send(b"", timeout_s=5)

    assert [reply.results for reply in replies] == [[]]


def test_a_killed_server_leaves_no_process_behind(tmp_path: Path) -> None:
    stations = write_stations(tmp_path / "stations")
    with FunctionServer(tmp_path / "log", "--stations", str(stations), "--insecure") as server:
        with Client.plain(server.address) as client:
            client.ask(request_for("echo"))
        left = descendants(server.daemon.pid)
        os.kill(server.daemon.pid, signal.SIGKILL)
        end = time.monotonic() + 90
        while any(Path(f"/proc/{pid}").exists() for pid in left):
            assert time.monotonic() < end, "a station's process is still there"
            time.sleep(0.05)

    assert len(left) == 2


def descendants(pid: int) -> list[int]:
    """Return the processes below one, as Linux knows them."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        children = [int(child) for child in (task / "children").read_text().split()]
        found += [*children, *(below for child in children for below in descendants(child))]
    return found
