// Package cron is the part of package complete that links the parser of cron expressions.
// It has what atoms/scheduledtasks exports, under the names that they would have in
// package complete. It is a separate package, so that programs that import complete do not
// link the parser.
package cron
