module github.com/ephemeralgo/ephemeral/complete

go 1.26.0

require (
	github.com/ephemeralgo/ephemeral/atoms/batching v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/data v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/data/file v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/data/postgres v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/data/sqlite v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/durable v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/durable/flow v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/durable/postgres v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/durable/sqlite v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/echo v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/fixedwork v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/hedge v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/keyedsequential v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/mesh v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/mesh/embedded v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/molecules v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/priorityprocessor v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/ratelimit v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/retry v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/scheduledtasks v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/signalaware v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/slidingcache v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/sqlitewriter v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/volatile v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/waveorchestrator v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/windowsize v0.1.0
	github.com/ephemeralgo/ephemeral/core v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/adaptiverate v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/anomalydetector v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/backpressure v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/circuitbreaker v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/controlledfanout v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/dynamicconcurrency v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/dynamicworkflow v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/flightrecorder v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/fxmodule v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/jobs v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/keyedpriorityfanout v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/logging v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/longwindowdemo v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/persistentwindow v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/reactivefanout v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/signalcoordinatedreads v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/signalinghttp v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/signallogwatcher v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/signalreactionshowcase v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/statuspage v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/telemetry v0.1.0
	github.com/jackc/pgx/v5 v5.12.0
	github.com/nats-io/nats.go v1.55.0
	go.uber.org/fx v1.24.0
)

require (
	github.com/antithesishq/antithesis-sdk-go v0.9.0-default-no-op // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dustin/go-humanize v1.1.0 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/google/go-tpm v0.9.8 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/klauspost/compress v1.20.4 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/minio/highwayhash v1.0.4 // indirect
	github.com/nats-io/jwt/v2 v2.8.3 // indirect
	github.com/nats-io/nats-server/v2 v2.15.3 // indirect
	github.com/nats-io/nkeys v0.4.17 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	github.com/ncruces/go-strftime v1.1.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel v1.47.0 // indirect
	go.opentelemetry.io/otel/log v1.47.0 // indirect
	go.opentelemetry.io/otel/metric v1.47.0 // indirect
	go.opentelemetry.io/otel/trace v1.47.0 // indirect
	go.uber.org/dig v1.19.0 // indirect
	go.uber.org/multierr v1.10.0 // indirect
	go.uber.org/zap v1.26.0 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/time v0.16.0 // indirect
	modernc.org/libc v1.79.0 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
	modernc.org/sqlite v1.61.1 // indirect
)

replace github.com/ephemeralgo/ephemeral/atoms/batching => ../atoms/batching

replace github.com/ephemeralgo/ephemeral/atoms/data => ../atoms/data

replace github.com/ephemeralgo/ephemeral/atoms/data/file => ../atoms/data/file

replace github.com/ephemeralgo/ephemeral/atoms/data/postgres => ../atoms/data/postgres

replace github.com/ephemeralgo/ephemeral/atoms/data/sqlite => ../atoms/data/sqlite

replace github.com/ephemeralgo/ephemeral/atoms/durable => ../atoms/durable

replace github.com/ephemeralgo/ephemeral/atoms/durable/flow => ../atoms/durable/flow

replace github.com/ephemeralgo/ephemeral/atoms/durable/postgres => ../atoms/durable/postgres

replace github.com/ephemeralgo/ephemeral/atoms/durable/sqlite => ../atoms/durable/sqlite

replace github.com/ephemeralgo/ephemeral/atoms/echo => ../atoms/echo

replace github.com/ephemeralgo/ephemeral/atoms/fixedwork => ../atoms/fixedwork

replace github.com/ephemeralgo/ephemeral/atoms/hedge => ../atoms/hedge

replace github.com/ephemeralgo/ephemeral/atoms/keyedsequential => ../atoms/keyedsequential

replace github.com/ephemeralgo/ephemeral/atoms/mesh => ../atoms/mesh

replace github.com/ephemeralgo/ephemeral/atoms/mesh/embedded => ../atoms/mesh/embedded

replace github.com/ephemeralgo/ephemeral/atoms/molecules => ../atoms/molecules

replace github.com/ephemeralgo/ephemeral/atoms/priorityprocessor => ../atoms/priorityprocessor

replace github.com/ephemeralgo/ephemeral/atoms/ratelimit => ../atoms/ratelimit

replace github.com/ephemeralgo/ephemeral/atoms/retry => ../atoms/retry

replace github.com/ephemeralgo/ephemeral/atoms/scheduledtasks => ../atoms/scheduledtasks

replace github.com/ephemeralgo/ephemeral/atoms/signalaware => ../atoms/signalaware

replace github.com/ephemeralgo/ephemeral/atoms/slidingcache => ../atoms/slidingcache

replace github.com/ephemeralgo/ephemeral/atoms/sqlitewriter => ../atoms/sqlitewriter

replace github.com/ephemeralgo/ephemeral/atoms/volatile => ../atoms/volatile

replace github.com/ephemeralgo/ephemeral/atoms/waveorchestrator => ../atoms/waveorchestrator

replace github.com/ephemeralgo/ephemeral/atoms/windowsize => ../atoms/windowsize

replace github.com/ephemeralgo/ephemeral/core => ../core

replace github.com/ephemeralgo/ephemeral/patterns/adaptiverate => ../patterns/adaptiverate

replace github.com/ephemeralgo/ephemeral/patterns/anomalydetector => ../patterns/anomalydetector

replace github.com/ephemeralgo/ephemeral/patterns/backpressure => ../patterns/backpressure

replace github.com/ephemeralgo/ephemeral/patterns/circuitbreaker => ../patterns/circuitbreaker

replace github.com/ephemeralgo/ephemeral/patterns/controlledfanout => ../patterns/controlledfanout

replace github.com/ephemeralgo/ephemeral/patterns/dynamicconcurrency => ../patterns/dynamicconcurrency

replace github.com/ephemeralgo/ephemeral/patterns/dynamicworkflow => ../patterns/dynamicworkflow

replace github.com/ephemeralgo/ephemeral/patterns/flightrecorder => ../patterns/flightrecorder

replace github.com/ephemeralgo/ephemeral/patterns/fxmodule => ../patterns/fxmodule

replace github.com/ephemeralgo/ephemeral/patterns/jobs => ../patterns/jobs

replace github.com/ephemeralgo/ephemeral/patterns/keyedpriorityfanout => ../patterns/keyedpriorityfanout

replace github.com/ephemeralgo/ephemeral/patterns/logging => ../patterns/logging

replace github.com/ephemeralgo/ephemeral/patterns/longwindowdemo => ../patterns/longwindowdemo

replace github.com/ephemeralgo/ephemeral/patterns/persistentwindow => ../patterns/persistentwindow

replace github.com/ephemeralgo/ephemeral/patterns/reactivefanout => ../patterns/reactivefanout

replace github.com/ephemeralgo/ephemeral/patterns/signalcoordinatedreads => ../patterns/signalcoordinatedreads

replace github.com/ephemeralgo/ephemeral/patterns/signalinghttp => ../patterns/signalinghttp

replace github.com/ephemeralgo/ephemeral/patterns/signallogwatcher => ../patterns/signallogwatcher

replace github.com/ephemeralgo/ephemeral/patterns/signalreactionshowcase => ../patterns/signalreactionshowcase

replace github.com/ephemeralgo/ephemeral/patterns/statuspage => ../patterns/statuspage

replace github.com/ephemeralgo/ephemeral/patterns/telemetry => ../patterns/telemetry
