# SPDX-License-Identifier: Apache-2.0
"""A client of the API: berth's own questions as methods, and any other request by its path."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlencode

from berth.client.answers import (
    Candidate,
    Candidates,
    Capacities,
    Changes,
    Consumer,
    Explanation,
    Fleet,
    Lease,
    NewConsumer,
    Placement,
    Placements,
    explanations_of,
)
from berth.client.errors import Incomplete, refusal_of
from berth.hosts import transports
from berth.hosts.errors import Refused
from berth.hosts.service import Answer, Service, Transport
from berth.model.paths import (
    CANDIDATES,
    CAPACITY,
    CHANGES,
    CONSUMERS,
    DRAINS,
    EXPLAIN,
    FLAVORS,
    FLEET,
    LEASES,
    OWN,
    PLACE,
    PLACEMENTS,
    TREES,
    consumer_path,
    path_of,
)

if TYPE_CHECKING:
    from keystoneauth1.session import Session

#: Every request uses the newest microversion.
VERSION: Final = "1.39"

#: The code of a 404 for what a path names, on a route that is there.
_NOT_FOUND: Final = "berth.not_found"

#: What is put need not be there before.
_PUT_BY_NAME: Final = (FLAVORS, DRAINS)

_NEXT_STEPS: Final[Mapping[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "authentication failed: check the token or the password",
}

#: What to place: a request of berth's own API as JSON, or a query of `GET /allocation_candidates`.
Request = Mapping[str, Any] | str


class Client:
    """A client of one service; make it with `at`, `of_session` or `of_transport`.

    Every method raises `Refused`, or one of its subclasses, if the service refuses the request, and
    `Unreachable` if it does not answer. A request that a busy service puts off is sent again.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    @classmethod
    def at(cls, url: str, token: str, *, cafile: str | None = None) -> Self:
        """A client of the service at a URL, with a token of `berth token create` or of Keystone.

        Args:
            cafile: the trusted certificate authorities; None: the system's.
        """
        return cls.of_transport(transports.with_token(url, token, cafile=cafile))

    @classmethod
    def of_session(
        cls,
        session: Session,
        *,
        url: str | None = None,
        region: str | None = None,
        interface: str = "public",
    ) -> Self:
        """A client with a session of keystoneauth.

        Args:
            url: the service; None: the one in Keystone's catalogue, in this region.
        """
        return cls.of_transport(
            transports.with_session(session, url=url, region=region, interface=interface)
        )

    @classmethod
    def of_transport(cls, transport: Transport) -> Self:
        """A client with an Adapter of keystoneauth, such as that of `berth.direct`."""
        return cls(Service(transport, next_steps=_NEXT_STEPS))

    # --- Questions --------------------------------------------------------------------------------

    def candidates(
        self,
        request: Request,
        *,
        order: str | Mapping[str, Any] | None = None,
        limit: int = 10,
        per_host: int | None = None,
        what_if: Mapping[str, Any] | None = None,
        explain: bool = False,
    ) -> Candidates:
        """Ask where a request fits.

        Args:
            order: `pack`, `spread`, `random` or `any`, or an order with its options.
            limit: the largest number of candidates.
            per_host: the largest number of candidates of one host.
            what_if: changes of the fleet to assume.
            explain: if nothing fits, say why.
        """
        asked = _given(
            request=_request(request),
            order={"by": order} if isinstance(order, str) else order,
            limit=limit,
            per_host=per_host,
            what_if=what_if,
            explain=explain,
        )
        return Candidates.of(self.send("POST", CANDIDATES, asked).json())

    def explain(
        self, request: Request, *, what_if: Mapping[str, Any] | None = None
    ) -> tuple[Explanation, ...]:
        """Ask why a request fits or does not: one explanation for each of its alternatives."""
        asked = _given(request=_request(request), what_if=what_if)
        return explanations_of(self.send("POST", EXPLAIN, asked).json())

    def capacity(
        self,
        requests: Mapping[str, Request] | None = None,
        *,
        flavors: Sequence[str] | None = None,
        by: Sequence[str] | None = None,
        hosts_max: int | None = None,
        what_if: Mapping[str, Any] | None = None,
    ) -> Capacities:
        """Ask how many more fit, of requests by names of the caller's choice, and of flavors.

        Without both, of all flavors.

        Args:
            by: keys of labels, `aggregate` or `host`: count also the hosts of each value; see
                `Capacity.answer`.
            hosts_max: list this many of the hosts with room for the most.
            what_if: changes of the fleet to assume.
        """
        named = None if requests is None else {name: _request(r) for name, r in requests.items()}
        asked = _given(requests=named, flavors=flavors, by=by, hosts_max=hosts_max, what_if=what_if)
        return Capacities(self.send("POST", CAPACITY, asked).json())

    # --- Consumers --------------------------------------------------------------------------------

    def place(
        self,
        request: Request | None,
        consumers: Sequence[NewConsumer],
        *,
        host: Mapping[str, Any] | None = None,
        order: str | Mapping[str, Any] | None = None,
        max_per: Mapping[str, int] | None = None,
        within: str | None = None,
        lease_seconds: int | None = None,
        replace: bool = False,
        tries: int | None = None,
        explain: bool = True,
        dry_run: bool = False,
        what_if: Mapping[str, Any] | None = None,
    ) -> Placements:
        """Choose the best hosts for some consumers and claim there, for all of them or none.

        A call that is repeated after `Unreachable` gets the answer of the first, and places nothing
        twice.

        Args:
            request: what each of them gets; None, with `replace`, for its own request.
            host: further conditions on hosts, of this call alone.
            order: `spread`, `pack` or `random`, or an order with its options.
            max_per: `host`, or keys of labels: the most on one host, or on the hosts of one
                value.
            within: `host`, or the key of a label: all on hosts of one value.
            lease_seconds: the service releases what they hold after this many seconds, unless
                `lease` renews it; None: never.
            replace: the consumers hold something, which counts as free and which they give back in
                the same transaction; each has its `generation`.
            tries: how often the service chooses again if other clients are faster.
            explain: whether a refusal says why there is no place, which takes time.
            dry_run: only choose, and write nothing.
            what_if: for a dry run: changes of the fleet to assume.

        Raises:
            Conflict: its `code` says why; `explanation` is that of `explain`, where nothing fits.
        """
        asked = _given(
            request=None if request is None else _request(request),
            host=host,
            consumers=[consumer.to_json() for consumer in consumers],
            order={"by": order} if isinstance(order, str) else order,
            max_per=max_per,
            within=within,
            lease_seconds=lease_seconds,
            replace=replace or None,
            tries=tries,
            explain=None if explain else False,
            what_if=what_if,
        )
        path = f"{PLACE}?dry_run=true" if dry_run else PLACE
        return Placements.of(self.send("POST", path, asked).json())

    def placement(self, reference: str) -> Placement:
        """Where a consumer is, and what it asked for.

        Args:
            reference: its UUID, or `project/name`.

        Raises:
            NotThere: it holds nothing.
        """
        sent = self.read(f"{PLACEMENTS}{path_of(*reference.split('/'))}")
        uuid = self.consumer(reference).uuid if "/" in reference else reference
        return Placement.of(uuid, sent)

    def claim(
        self,
        consumer: str,
        candidate: Candidate,
        *,
        project_id: str,
        user_id: str,
        consumer_type: str = "INSTANCE",
        lease_seconds: int | None = None,
    ) -> None:
        """Allocate a candidate to a new consumer.

        Args:
            consumer: a UUID that the caller chooses.
            lease_seconds: as `lease`, in a second request: a program that is killed between the two
                leaves the consumer without a lease. `place` and `claim_for` need one request.

        Raises:
            Conflict: another client was faster, or the consumer holds something; ask for candidates
                again.
        """
        body = {
            **_claimed(candidate),
            "project_id": project_id,
            "user_id": user_id,
            "consumer_type": consumer_type,
            "consumer_generation": None,
        }
        self.send("PUT", path_of("allocations", consumer), body)
        if lease_seconds is not None:
            self.lease(consumer, lease_seconds)

    def claim_for(
        self,
        name: str,
        candidate: Candidate,
        *,
        user_id: str,
        consumer_type: str = "INSTANCE",
        lease_seconds: int | None = None,
    ) -> str:
        """Allocate a candidate to a new consumer with a name; return its UUID.

        Args:
            name: `project/name`, which is free again when the consumer releases everything.
            lease_seconds: as in `place`.

        Raises:
            Conflict: as `claim`; its `code` is `berth.consumer.name_taken` if another consumer has
                the name.
        """
        body = {
            **_claimed(candidate),
            **_given(user_id=user_id, consumer_type=consumer_type, lease_seconds=lease_seconds),
        }
        return str(self.send("PUT", consumer_path(name), body).json()["uuid"])

    def consumers(
        self,
        *,
        host: str | None = None,
        provider: str | None = None,
        project_id: str | None = None,
        user_id: str | None = None,
        consumer_type: str | None = None,
        name: str | None = None,
    ) -> Iterator[Consumer]:
        """List who holds what: the consumers that satisfy all filters.

        Args:
            host: the name or UUID of a provider: they hold something of its tree.
            provider: the same: they hold something of it itself.
            project_id: whoever may not see everything must name a project.

        Raises:
            Incomplete: the list broke off.
        """
        filters = _given(
            host=host,
            provider=provider,
            project_id=project_id,
            user_id=user_id,
            consumer_type=consumer_type,
            name=name,
        )
        values, _ = lines_of(self.get(CONSUMERS, filters.items()))
        return map(Consumer.of, values)

    def consumer(self, reference: str) -> Consumer:
        """A consumer with everything that it holds.

        Args:
            reference: its UUID, or `project/name`.

        Raises:
            NotThere: it holds nothing.
        """
        return Consumer.of(self.read(consumer_path(reference)))

    def release(self, reference: str, *, generation: int | None = None) -> None:
        """Give back everything that a consumer holds.

        Args:
            reference: its UUID, or `project/name`.
            generation: only if it is still at this one.

        Raises:
            NotThere: it holds nothing.
            Conflict: it is at another generation, or another client changed it meanwhile.
        """
        query = "" if generation is None else f"?generation={generation}"
        self.send("DELETE", f"{consumer_path(reference)}{query}")

    # --- Leases -----------------------------------------------------------------------------------

    def lease(self, reference: str, seconds: int) -> Lease:
        """Give a consumer a lease, or renew the one that it has: the service takes back what it
        holds this many seconds from now, at most a day.

        Args:
            reference: its UUID, or `project/name`.

        Raises:
            NotThere: it holds nothing; the lease may have expired.
        """
        path = self.lease_path(reference)
        return Lease.of(self.send("PUT", path, {"seconds": seconds}).json())

    def leases(self) -> Iterator[Lease]:
        """List the leases of all consumers.

        Raises:
            Incomplete: the list broke off.
        """
        values, _ = lines_of(self.get(LEASES))
        return map(Lease.of, values)

    def end_lease(self, reference: str) -> None:
        """Let a consumer keep what it holds.

        Args:
            reference: its UUID, or `project/name`.

        Raises:
            NotThere: it has no lease.
        """
        self.send("DELETE", self.lease_path(reference))

    def lease_path(self, reference: str) -> str:
        """The path of a consumer's lease, by its UUID or `project/name`.

        Raises:
            NotThere: nobody has the name.
        """
        is_name = "/" in reference
        uuid = self.read(consumer_path(reference))["uuid"] if is_name else reference
        return f"{LEASES}{path_of(uuid)}"

    # --- The whole fleet --------------------------------------------------------------------------

    def fleet(self, include: Sequence[str] | None = None) -> Fleet:
        """Every provider, as of one state; `berth.client.Replica` keeps such a copy up to date.

        Args:
            include: which parts of each provider: `inventories`, `usages`, `traits`, `aggregates`,
                `drains`, `allocations`; None: all but the last.

        Raises:
            Incomplete: the answer broke off.
        """
        query = [] if include is None else [("include", ",".join(include))]
        (header, *providers), _ = lines_of(self.get(FLEET, query))
        return Fleet(header["revision"], providers)

    def changes(self, after: str, *, wait: int = 0) -> Changes:
        """What has changed since a revision.

        Args:
            after: the revision of a fleet, or of earlier changes.
            wait: seconds to wait for a change, 0 to 60.

        Raises:
            Refused: 410, if the service has forgotten what changed since.
            Incomplete: the answer broke off.
        """
        answer = self.get(CHANGES, [("after", after), ("wait", str(wait))])
        *events, closing = _each_line(answer)
        if "revision" not in closing:
            raise Incomplete("The connection broke before the end of the changes. Ask again.")
        return Changes(closing["revision"], events)

    # --- Any other request ------------------------------------------------------------------------

    def get(self, path: str, query: Iterable[tuple[str, str]] = ()) -> Answer:
        """Send a GET with query parameters, some of which may repeat."""
        pairs = list(query)
        return self.send("GET", f"{path}?{urlencode(pairs)}" if pairs else path)

    def read(self, path: str, *query: tuple[str, str]) -> Any:
        """The decoded answer to a GET."""
        return self.get(path, query).json()

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Answer:
        """Send a request of either API, at the newest microversion; `body` is sent as JSON."""
        try:
            return self._service.send(method, path, body, version=VERSION, headers=headers)
        except Refused as refusal:
            route = path.partition("?")[0]
            # Most servers decode a slash in a name, so that the path has a segment too many.
            is_own = "%2F" not in route and (
                # It names nothing that may not be there.
                route.rpartition("/")[0] == OWN
                # A flavor or a drain need not be there to be put.
                or (method == "PUT" and route.startswith(_PUT_BY_NAME))
                # Without this code, it is the route that is not there.
                or (route.startswith(TREES) and refusal.code != _NOT_FOUND)
            )
            raise refusal_of(refusal, route, is_own_route=is_own) from refusal


def _each_line(answer: Answer) -> list[Any]:
    """The value of each line. A text in it may hold what `str.splitlines` takes for an end."""
    return [json.loads(line) for line in answer.text.split("\n") if line]


def lines_of(answer: Answer) -> tuple[list[Mapping[str, Any]], Mapping[str, Any]]:
    """The values of JSON lines, and the last line, which tells that these are all.

    Raises:
        Incomplete: the last line is missing.
    """
    values = _each_line(answer)
    if not values or not values[-1].get("end"):
        raise Incomplete("The connection broke before the end of the list. Ask again.")
    return values[:-1], values[-1]


def _claimed(candidate: Candidate) -> dict[str, Any]:
    return {
        "allocations": {
            provider: {"resources": resources}
            for provider, resources in candidate.allocations.items()
        },
        "mappings": candidate.mappings,
    }


def _request(request: Request) -> Mapping[str, Any]:
    return {"query": request} if isinstance(request, str) else request


def _given(**members: Any) -> dict[str, Any]:
    """The members that are not None."""
    return {name: value for name, value in members.items() if value is not None}
