// Package cron is the part of package complete for tasks at times of cron expressions. It
// has what atoms/scheduledtasks exports, under the names that they would have in package
// complete. It is a separate package, so that programs that import complete do not link
// the parser of these expressions.
package cron
