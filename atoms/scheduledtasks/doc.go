// Package scheduledtasks hands tasks to a target, such as a coordinator, at the times that
// cron expressions name.
//
//	run, err := core.NewCoordinator(scheduledtasks.Run(work), core.Options{Sink: sink})
//	...
//	tasks, err := scheduledtasks.Load("schedule.json", run, scheduledtasks.Options{Sink: sink, Store: store})
//	if err != nil {
//		return err // schedule.json: entry 3, "cron": expected 5 or 6 fields, got "every day"
//	}
//	defer tasks.Close()
//
// The file is a JSON array of objects: see [Definition]. A tick is a time that the cron
// expression of a schedule names. For each tick, the scheduler hands over a [Task]. It has
// the name of the schedule, the tick, and a signal with key and payload (optional with a
// [TargetFunc]). [Raise] and [Run] are functions for core.NewCoordinator. Raise raises the signal, so its listeners do the work.
// Run also calls your function.
//
// # Cron
//
// An expression has 5 fields: minute, hour, day of month, month and day of week. A 6th
// field, for seconds, may stand before them. A field is a list, separated by commas, of
//
//   - numbers, and names of months and weekdays: 0, 15, JAN, mon; 7 is Sunday, like 0,
//   - ranges: 9-17, MON-FRI; a range cannot wrap,
//   - * or ? for all numbers,
//   - and steps: */15, 10-40/10, and 5/20, which means 5-59/20 for minutes.
//
// The last-day, weekday and n-th-weekday forms of other schedulers (L, W, #) are errors.
//
// If the day of month and the day of week are both given, one of them has to match, as in
// Unix cron: "0 0 13 * FRI" is every 13th and every Friday. If one of the two fields begins
// with * or ?, both have to match.
//
// These macros stand for expressions: @every_second, @every_minute, @hourly, @daily,
// @midnight, @weekly (on Sunday), @monthly, @yearly and @annually. "@every 1h30m" is due at
// each multiple of the duration since the beginning of the year 1 in UTC. The duration has
// whole seconds. The start of the program does not matter: "@every 24h" is due at midnight
// UTC, and "@every 168h" at midnight UTC on Mondays.
//
// # Time zones
//
// An expression names times of the definition's time zone; the default is UTC. When the
// clocks of that zone change:
//
//   - An expression without *, ranges and steps in the fields of seconds, minutes and hours
//     names fixed times. If the clocks jump over such a time, it is due at the jump. If the
//     time exists twice, it is due the first time only. So "30 2 * * *" is due once every day.
//   - Any other expression follows the clock: it is due whenever the clock shows a time that
//     matches. So "*/30 * * * *" is due every 30 minutes, in both passes of a repeated hour,
//     and "*/30 2 * * *" is not due on a day without that hour.
//
// A program on a system without time zones imports time/tzdata.
//
// # Missed ticks
//
// A tick is missed if the scheduler notices it more than a minute late, or if a later tick of
// the schedule is already due. Reasons are: the computer slept; the clock was set forward; the
// hand-over of the last task took too long, or failed; with [Options.Store], no process ran.
// [Options.Missed] says how many ticks are run then: the newest ones. If the newest tick is in
// time, it is always run and counts as one of them. [Missed] reports missed ticks.
//
// With [Options.Store], a schedule goes on with its next tick from now if its cron or time zone was changed, or
// if it was paused when the last process ended. A time before the change or in the pause has no missed ticks.
//
// If the clock is set back, a schedule waits for the first tick after its last one. No tick
// is due twice.
//
// # Handing over
//
// A schedule hands over one task at a time, within [Options.Timeout]. Schedules do not wait
// for each other. If a hand-over fails, [Failed] is raised, and the tick is tried again
// after 100 milliseconds, and then after pauses that double, up to 5 seconds. Later ticks of the schedule wait
// for it. When a later tick is due, or after a minute, the tick is missed, as above. There is no other try if
// the target panics, is closed or refuses the task with a [core.RefusedError], if the operation is cancelled, or if the
// error has a method Permanent that returns true, such as one of retry.Permanent.
//
// A tick is marked in [Options.Store] after its task was handed over. After a crash between
// the two, the task is handed over again with the same [Task.ID]. If the target accepts each
// ID once, each tick becomes exactly one task: see [TargetFunc]. Then many processes may run
// the same schedules, with a common store or with one store each.
//
// If the target is a coordinator, each process runs each task: a common store does not prevent
// that. A coordinator keeps tasks in memory: they are lost if the process ends. A durable queue
// keeps them: see [TargetFunc].
package scheduledtasks
