module github.com/ephemeralgo/ephemeral/examples

go 1.26.0

require (
	github.com/ephemeralgo/ephemeral/atoms/batching v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/durable v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/durable/sqlite v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/retry v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/scheduledtasks v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/slidingcache v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/sqlitewriter v0.1.0
	github.com/ephemeralgo/ephemeral/core v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/circuitbreaker v0.1.0
)

require (
	github.com/dustin/go-humanize v1.1.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/ncruces/go-strftime v1.1.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	golang.org/x/sys v0.50.0 // indirect
	modernc.org/libc v1.79.0 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
	modernc.org/sqlite v1.61.1 // indirect
)

replace (
	github.com/ephemeralgo/ephemeral/atoms/batching => ../atoms/batching
	github.com/ephemeralgo/ephemeral/atoms/durable => ../atoms/durable
	github.com/ephemeralgo/ephemeral/atoms/durable/sqlite => ../atoms/durable/sqlite
	github.com/ephemeralgo/ephemeral/atoms/retry => ../atoms/retry
	github.com/ephemeralgo/ephemeral/atoms/scheduledtasks => ../atoms/scheduledtasks
	github.com/ephemeralgo/ephemeral/atoms/slidingcache => ../atoms/slidingcache
	github.com/ephemeralgo/ephemeral/atoms/sqlitewriter => ../atoms/sqlitewriter
	github.com/ephemeralgo/ephemeral/core => ../core
	github.com/ephemeralgo/ephemeral/patterns/circuitbreaker => ../patterns/circuitbreaker
)
