"""Machine reasons: the CamelCase words of trails, conditions and events.

One enum, so that a word means one thing wherever it appears and the documentation can list them all.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why something is as it is. Documented, one by one, in docs/reference/reasons.md."""

    # Where the demand comes from
    OVERRIDE = "Override"
    CALENDAR = "Calendar"
    WINDOW = "Window"
    PROFILE = "Profile"
    BASE = "Base"
    # How replicas follow
    CAPACITY = "Capacity"
    TOTAL_STATED = "TotalStated"
    RESERVE = "Reserve"
    QUIET_RESERVE = "QuietReserve"
    WITHIN_BOUNDS = "WithinBounds"
    MAX_REPLICAS = "MaxReplicas"
    MIN_REPLICAS = "MinReplicas"
    # How the schedule acts
    READY_BEFORE_RAMP = "ReadyBeforeRamp"
    AT_LEVEL = "AtLevel"
    FALLING = "Falling"
    FEEDBACK_OFF = "FeedbackOff"
    FEEDBACK_RAISES = "FeedbackRaises"
    SUSPENDED = "Suspended"
    # What feedback makes of a signal
    WITHIN_PLAN = "WithinPlan"
    ABOVE_PLAN = "AbovePlan"
    ALREADY_DUE = "AlreadyDue"
    EXTRA_HELD = "ExtraHeld"
    TRANSIENT_BURST = "TransientBurst"
    PROMPTS_LONGER = "PromptsLonger"
    IMBALANCED = "Imbalanced"
    SETTLING = "Settling"
    START_STUCK = "StartStuck"
    OVER_LIMIT = "OverLimit"
    WITHIN_LIMIT = "WithinLimit"
    CONFIRMS = "Confirms"
    NOT_USED = "NotUsed"
    NOT_KNOWN = "NotKnown"
    # Plan and target
    RESOLVED = "Resolved"
    INVALID = "Invalid"
    CALENDAR_EXPIRED = "CalendarExpired"
    WARNINGS = "Warnings"
    TARGET_FOUND = "TargetFound"
    TARGET_NOT_FOUND = "TargetNotFound"
    TARGET_CLAIMED = "TargetClaimed"
    TARGET_NOT_SCALABLE = "TargetNotScalable"
    OWNED_BY_SCALED_OBJECT = "OwnedByScaledObject"
    NAME_TAKEN = "NameTaken"
    APPLY_REFUSED = "ApplyRefused"
    READ_REFUSED = "ReadRefused"
    # Ready, Reconciling, Stalled
    AS_PLANNED = "AsPlanned"
    BELOW_REQUIRED = "BelowRequired"
    STARTING = "Starting"
    ROLLING_UPDATE = "RollingUpdate"
    GENERATION_NOT_APPLIED = "GenerationNotApplied"
    # Ramps
    NO_RAMP_DUE = "NoRampDue"
    RAMP_READY = "RampReady"
    RAMP_AT_RISK = "RampAtRisk"
    RAMP_MISSED = "RampMissed"
    LEAD_TOO_SHORT = "LeadTooShort"
    # What holds a replica up
    UNSCHEDULABLE = "Unschedulable"
    IMAGE_PULL = "ImagePull"
    ENGINE_CRASH = "EngineCrash"
    QUOTA_REFUSED = "QuotaRefused"
    VOLUME_NOT_SHAREABLE = "VolumeNotShareable"
    NODE_NOT_READY = "NodeNotReady"
    NOT_READY_ANY_MORE = "NotReadyAnyMore"
    # Reserve and GPUs
    RESERVE_READY = "ReserveReady"
    RESERVE_MISSING = "ReserveMissing"
    NODE_CONCENTRATION = "NodeConcentration"
    GPUS_SUFFICIENT = "GPUsSufficient"
    GPUS_MISSING = "GPUsMissing"
    NODES_ELASTIC = "NodesElastic"
    # Who writes replicas
    SOLE_WRITER = "SoleWriter"
    SECOND_WRITER = "SecondWriter"
    SCALED_BY_HPA = "ScaledByHPA"
    FLOOR_HELD = "FloorHeld"
    # Drain
    DRAIN_FITS = "DrainFits"
    DRAIN_TOO_SHORT = "DrainTooShort"
    DRAIN_UNKNOWN = "DrainUnknown"
    # Template
    UP_TO_DATE = "UpToDate"
    TEMPLATE_HELD = "TemplateHeld"
    # Variant
    FIRST_VARIANT = "FirstVariant"
    VARIANT_RUNS = "VariantRuns"
    VARIANT_RAN_BEFORE = "VariantRanBefore"
    RUNNING_VARIANT_FAILED = "RunningVariantFailed"
    EVALUATION_PASSED = "EvaluationPassed"
    NO_EVALUATION = "NoEvaluation"
    EVALUATION_UNREADABLE = "EvaluationUnreadable"
    EVALUATION_RUNNING = "EvaluationRunning"
    EVALUATION_STOPPED = "EvaluationStopped"
    EVALUATION_FAILED = "EvaluationFailed"
    EVALUATION_INCONCLUSIVE = "EvaluationInconclusive"
    OTHER_VARIANT_EVALUATED = "OtherVariantEvaluated"
    # Demand
    DEMAND_AS_PLANNED = "DemandAsPlanned"
    DEMAND_ABOVE_PLAN = "DemandAbovePlan"
    LEAD_CAPPED = "LeadCapped"
    NOT_DRAINED = "NotDrained"
    # Why there are no signals
    METRICS_HEARD = "MetricsHeard"
    SOURCE_UNKNOWN = "SourceUnknown"
    METRICS_AWAITED = "MetricsAwaited"
    METRICS_UNREACHABLE = "MetricsUnreachable"
    METRICS_REFUSED = "MetricsRefused"
    METRICS_INVALID = "MetricsInvalid"
    METRICS_INCOMPLETE = "MetricsIncomplete"
    METRICS_MISSING = "MetricsMissing"
    LABELS_MISSING = "LabelsMissing"
    METRICS_STALE = "MetricsStale"
