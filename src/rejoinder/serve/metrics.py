"""The server's counters, in Prometheus' text format."""

from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096)


class Metrics:
    """The counters of one server."""

    def __init__(self, waiting: Callable[[], int]) -> None:
        """Starts at zero. `waiting` returns the number of texts in the queue."""
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        self._requests = Counter(
            "rejoinder_requests_total",
            "Requests answered, by route and status.",
            ("route", "status"),
            registry=registry,
        )
        self._seconds = Histogram(
            "rejoinder_request_seconds",
            "Seconds from a request's head to the end of its answer.",
            ("route",),
            buckets=_SECONDS,
            registry=registry,
        )
        self.batches = Histogram(
            "rejoinder_batch_texts",
            "Texts that were encoded at a time.",
            buckets=_TEXTS,
            registry=registry,
        )
        queued = "Texts that wait for the encoder."
        Gauge("rejoinder_queue_texts", queued, registry=registry).set_function(waiting)

    def count(self, route: str, status: int, seconds: float) -> None:
        """Counts a request."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Returns all values in Prometheus' text format."""
        return generate_latest(self._registry)
