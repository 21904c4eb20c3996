// Package scheduledtasks hands tasks to a coordinator, or to anything else that accepts
// them, at the times that cron expressions say.
//
//	run, err := core.NewCoordinator(scheduledtasks.Run(work), core.Options{Sink: sink})
//	...
//	tasks, err := scheduledtasks.Load("schedule.json", run, scheduledtasks.Options{Sink: sink, Store: store})
//	if err != nil {
//		return err // schedule.json: entry 3, "cron": expected 5 or 6 fields, got "every day"
//	}
//	defer tasks.Close()
//
// The file is a JSON array of objects: see [Definition]. A [Task] says which schedule it is
// of, which signal to raise, with which key and payload, and which tick it is for: the time
// at which the expression says that it is due. [Raise] and [Run] are the work of a
// coordinator that raises the signal, so that listeners do the work, or do theirs as well.
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
// each multiple of a duration of whole seconds, counted in UTC from the beginning of the
// year 1. So it does not depend on when the program was started: "@every 24h" is midnight
// UTC, and "@every 168h" is the same on Mondays.
//
// # Time zones
//
// An expression means times of the definition's time zone, which is UTC if there is none.
// When clocks are changed there:
//
//   - An expression without *, ranges and steps in the fields of seconds, minutes and hours
//     names fixed times. A time that does not exist, because the clocks jump over it, is due
//     at the jump. A time that exists twice is due the first time only. So "30 2 * * *" is
//     due once every day.
//   - Any other expression follows the clock: it is due whenever the clock shows a time that
//     matches. So "*/30 * * * *" is due every 30 minutes, in both passes of a repeated hour,
//     and "*/30 2 * * *" is not due on a day without that hour.
//
// A program on a system without time zones imports time/tzdata.
//
// # Missed ticks
//
// A tick is missed if the scheduler notices it more than a minute late, or if later ticks of
// the schedule are due as well: because the computer slept, the clock was set forward, the
// target did not accept the last task before, or, with [Options.Store], no process ran.
// [Options.Missed] says how many of them are run, the newest; a newest tick that is in time
// counts as one of them. [SignalMissed] reports them.
//
// When the clock is set back, a schedule waits until it shows the next tick that has not
// been due yet. No tick is due twice.
//
// # Handing over
//
// A schedule hands over one task at a time, within [Options.Timeout]. Schedules do not wait
// for each other: if a coordinator is full, or a target is slow, only the schedules with
// tasks for it are late. If a task cannot be handed over, [SignalFailed] is raised, and
// the schedule goes on with its next tick. To try again, wrap a [TargetFunc].
//
// A tick is marked in the store when its task was handed over. So, after a crash in between,
// the task is handed over again: at least once, and with the same [Task.ID]. A target
// that accepts each ID once makes it exactly one task for a tick: see [TargetFunc]. Then many
// processes may run the same schedules, with one store or one each.
//
// A coordinator keeps tasks in memory. What it has accepted is lost if the process ends.
package scheduledtasks
