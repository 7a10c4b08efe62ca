package exporter

// table is every metric: name, type, help, labels. A name or a label here is a
// contract (docs/metrics.md).
var table = [metricCount]Metric{
	buildInfo: {
		"locksteward_build_info", Gauge,
		"Always 1; the version of this agent.",
		[]string{"version", "revision", "goversion"},
	},
	targetInfo: {
		"locksteward_target_info", Gauge,
		"Always 1; which kind of store the target is (source): join it on target.",
		[]string{"target", "source"},
	},
	targetUp: {
		"locksteward_target_up", Gauge,
		"Whether the last contact with the target worked (1) or not (0).",
		byTarget,
	},
	locks: {
		"locksteward_locks", Gauge,
		"Lock keys known now. Absent while the target is away, and for a class without locks.",
		[]string{"target", "class", "library"},
	},
	locksWithoutTTL: {
		"locksteward_locks_without_ttl", Gauge,
		"Lock keys without a TTL, allowed or not. locksteward_findings{rule=\"ttl/none\"} knows the class's policy: alert on that.",
		byClass,
	},
	locksOverdue: {
		"locksteward_locks_overdue", Gauge,
		"Lock keys held for longer than expected. Absent for a class where nobody says what to expect.",
		byClass,
	},
	lockLongestHold: {
		"locksteward_lock_longest_hold_seconds", Gauge,
		"Age of the oldest hold at its last look; a lower bound where the holder does not say when it began.",
		byClass,
	},
	lockAge: {
		"locksteward_lock_age_seconds", Gauge,
		"Age of each of the locks held longest at its last look. Only with metrics.top_locks, and at most that many.",
		[]string{"target", "class", "key"},
	},
	lockHold: {
		"locksteward_lock_hold_seconds", Histogram,
		"How long ended holds lasted, as far as sweeps saw it: lower bounds, and short holds are mostly missed.",
		byClass,
	},
	lockWaiters: {
		"locksteward_lock_waiters", Gauge,
		"Clients that wait for locks. Absent for a class whose libraries do not show their waiters.",
		byClass,
	},
	lockAcquires: {
		"locksteward_lock_acquires_total", Counter,
		"Locks taken: as heartbeats report, else holds that sweeps saw begin; a lower bound.",
		byClass,
	},
	lockAcquireFailures: {
		"locksteward_lock_acquire_failures_total", Counter,
		"Attempts that ended without the lock, as heartbeats report; a lower bound. Absent for libraries that do not count them.",
		byClass,
	},
	lockRenewals: {
		"locksteward_lock_renewals_total", Counter,
		"Renewals: as heartbeats or metadata report, else seen from outside, at most one for each sweep; a lower bound.",
		byClass,
	},
	lockRenewalFailures: {
		"locksteward_lock_renewal_failures_total", Counter,
		"Failed renewals, as heartbeats report, or metadata with the next success; a lower bound. Absent for libraries that do not report them.",
		byClass,
	},
	locksLost: {
		"locksteward_locks_lost_total", Counter,
		"Holds that ended without a release, as heartbeats report or left metadata proves: expired, deleted or replaced.",
		byClass,
	},
	locksExpired: {
		"locksteward_locks_expired_total", Counter,
		"Holds seen whose lease ran out.",
		byClass,
	},
	lockCandidates: {
		"locksteward_lock_candidates", Gauge,
		"Keys that only a built-in name pattern matched in the last sweep: neither judged nor releasable, and in no other metric.",
		byTarget,
	},
	findings: {
		"locksteward_findings", Gauge,
		"Findings that fire now; never 0. The class is empty for findings about a target.",
		[]string{"target", "class", "rule", "severity", "risk"},
	},
	findingsUnsaved: {
		"locksteward_findings_unsaved", Gauge,
		"Changes of findings that the store has not taken yet. They are in memory, and people are notified meanwhile.",
		byTarget,
	},
	classMatched: {
		"locksteward_class_matched", Gauge,
		"Whether a lock of the class was seen since the start (1) or not (0). Absent before each target was swept in full.",
		[]string{"class"},
	},
	classInfo: {
		"locksteward_class_info", Gauge,
		"Always 1; team and runbook of each configured class, for joins.",
		[]string{"class", "team", "runbook"},
	},
	releaseEnabled: {
		"locksteward_release_enabled", Gauge,
		"Whether this agent has credentials to release locks of the target (1) or cannot delete (0).",
		byTarget,
	},
	leader: {
		"locksteward_leader", Gauge,
		"Whether this agent holds the right to work on the target (1). Absent while that is not known.",
		byTarget,
	},
	sweepDuration: {
		"locksteward_sweep_duration_seconds", Gauge,
		"Duration of the last sweep.",
		byTarget,
	},
	sweepKeys: {
		"locksteward_sweep_keys_total", Counter,
		"Keys that sweeps scanned.",
		byTarget,
	},
	sweepLastSuccess: {
		"locksteward_sweep_last_success_timestamp_seconds", Gauge,
		"When the last complete sweep ended, by the agent's clock. Absent before the first.",
		byTarget,
	},
	sweepComplete: {
		"locksteward_sweep_complete", Gauge,
		"Whether the last sweep saw all keys of all masters (1) or was cut short (0).",
		byTarget,
	},
	budgetThrottled: {
		"locksteward_budget_throttled_seconds_total", Counter,
		"Time that sweeps waited to spare the server, by reason.",
		[]string{"target", "reason"},
	},
	paceShare: {
		"locksteward_pace_share", Gauge,
		"The share of its time that the least of the target's servers grants to sweeping now. Absent before the first sweep begins.",
		byTarget,
	},
	budgetPaused: {
		"locksteward_budget_paused", Gauge,
		"Whether an operator paused the target (1): nothing is asked of it, and nothing new is found.",
		byTarget,
	},
	commandRefused: {
		"locksteward_command_refused", Gauge,
		"1 while the server refuses the agent's user a command, or the keys beside locks, that sweeps can do without. Absent otherwise.",
		[]string{"target", "command"},
	},
	watchMode: {
		"locksteward_watch_mode", Gauge,
		"How changes are noticed between sweeps: 1 for the mode in use (tracking, keyspace or sweep), 0 for the others.",
		[]string{"target", "mode"},
	},
	watchBlind: {
		"locksteward_watch_blind_seconds_total", Counter,
		"Time in which changes may have gone unseen until the next sweep, since a watch that worked was broken; summed over masters.",
		byTarget,
	},
	watchMissed: {
		"locksteward_watch_missed_total", Counter,
		"Changes older than a second that a sweep found and the watch had missed, outside of blind time. Anything but 0 is a defect, or SWAPDB.",
		byTarget,
	},
	watchDelay: {
		"locksteward_watch_delay_seconds", Gauge,
		"The longest time within the last minute from a change that the server reported, or that was due, until it was judged and stored; waiting changes count, too.",
		byTarget,
	},
	classWatched: {
		"locksteward_class_watched", Gauge,
		"Whether all keys of the class are watched (1) or some of them only by sweeps (0).",
		byClass,
	},
	redisConnectedClients: {
		"locksteward_redis_connected_clients", Gauge,
		"Clients connected to the server.",
		byNode,
	},
	redisMaxClients: {
		"locksteward_redis_max_clients", Gauge,
		"Limit of connected clients.",
		byNode,
	},
	redisMemoryUsed: {
		"locksteward_redis_memory_used_bytes", Gauge,
		"Memory that the server uses.",
		byNode,
	},
	redisMemoryMax: {
		"locksteward_redis_memory_max_bytes", Gauge,
		"Limit of memory; 0 is no limit.",
		byNode,
	},
	redisCPU: {
		"locksteward_redis_cpu_seconds_total", Counter,
		"CPU time of the server since its start, by mode: system or user.",
		[]string{"target", "node", "mode"},
	},
	redisEvictedKeys: {
		"locksteward_redis_evicted_keys_total", Counter,
		"Keys that the server evicted for lack of memory since its start; locks can be among them.",
		byNode,
	},
	releaseRequests: {
		"locksteward_release_requests", Gauge,
		"Release requests in the store, by state.",
		[]string{"state"},
	},
	releases: {
		"locksteward_releases_total", Counter,
		"Release requests that reached a final state, by outcome.",
		[]string{"target", "class", "outcome"},
	},
	deliveries: {
		"locksteward_notifications_total", Counter,
		"Attempts to deliver notifications, by receiver, outcome and reason.",
		[]string{"receiver", "outcome", "reason"},
	},
	alertsSuppressed: {
		"locksteward_notifications_suppressed_total", Counter,
		"Changes of findings that a receiver was not notified of, by reason.",
		[]string{"receiver", "reason"},
	},
	alertsOmitted: {
		"locksteward_notifications_omitted_total", Counter,
		"Findings that a notification to the receiver counts and does not list.",
		[]string{"receiver"},
	},
	alertGroups: {
		"locksteward_notification_groups", Gauge,
		"Groups of findings that will be in a notification to the receiver: new ones and repeats.",
		[]string{"receiver"},
	},
	templateFailures: {
		"locksteward_template_failures_total", Counter,
		"Notifications with the built-in text, since the receiver's template failed.",
		[]string{"receiver"},
	},
	outboxDepth: {
		"locksteward_notifications_queue_length", Gauge,
		"Notifications that wait for a receiver, those in flight included.",
		[]string{"receiver"},
	},
	outboxOldest: {
		"locksteward_notifications_oldest_seconds", Gauge,
		"How long the oldest of them has been waiting; 0 if none waits.",
		[]string{"receiver"},
	},
	outboxDead: {
		"locksteward_notifications_dead", Gauge,
		"Notifications that were given up and can be retried.",
		[]string{"receiver"},
	},
	circuitOpen: {
		"locksteward_receiver_circuit_open", Gauge,
		"Whether the receiver accepts nothing (1): one notification at a time is tried.",
		[]string{"receiver"},
	},
	replicas: {
		"locksteward_replicas", Gauge,
		"Agents that share the store, as this one saw them last, itself included. Absent with a store of its own.",
		nil,
	},
	configLastReload: {
		"locksteward_config_last_reload_successful", Gauge,
		"Whether the configuration was read without error the last time (1) or the one before is still in use (0).",
		nil,
	},
	consoleInfo: {
		"locksteward_console_info", Gauge,
		"Always 1; where people reach the console (alert.console_url). Absent without that key.",
		[]string{"url"},
	},
	heartbeatLastSuccess: {
		"locksteward_heartbeat_last_success_timestamp_seconds", Gauge,
		"When the last heartbeat (alert.heartbeat) was taken. Absent before the first.",
		nil,
	},
	sweepStale: {
		"locksteward_sweep_stale", Gauge,
		"Whether a complete sweep of the target is overdue by its schedule (1): no heartbeats are sent then.",
		byTarget,
	},
	certificateExpiry: {
		"locksteward_certificate_expiry_timestamp_seconds", Gauge,
		"When a certificate in use ends, by what it is for and its key in the configuration, or server for the one that the server shows; of a file of authorities the last. At most the 100 that end first.",
		byFile,
	},
	credentialRefused: {
		"locksteward_credential_refused", Gauge,
		"1 while a file of a certificate or password cannot be used, so that what it held before stays in use. Absent otherwise.",
		byFile,
	},
	targetSourceUp: {
		"locksteward_target_source_up", Gauge,
		"Whether what a source of targets (targets_from) has now is in use (1) or what it had before stays (0).",
		bySource,
	},
	storeDamaged: {
		"locksteward_store_damaged", Gauge,
		"Whether the store was found damaged since the agent began (1).",
		nil,
	},
	storeNeedsRepair: {
		"locksteward_store_needs_repair", Gauge,
		"Whether an fsync of the SQLite store failed since the agent began (1): nothing is written until locksteward store backup --in-place was run.",
		nil,
	},
	storeErrors: {
		"locksteward_store_errors_total", Counter,
		"Calls of the store that failed, by kind: away, damaged, full, locked, read_only, or unsynced, a write that the disk did not confirm.",
		[]string{"kind"},
	},
}
