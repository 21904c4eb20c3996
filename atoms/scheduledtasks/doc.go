// Package scheduledtasks
package scheduledtasks
