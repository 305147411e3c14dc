"""Which node a pod goes to, and which devices it gets there: queue, cluster view, filters, scores, claims, binding."""

from kubedra.scheduler.scheduler import Scheduler as Scheduler
from kubedra.scheduler.settings import SchedulerSettings as SchedulerSettings
