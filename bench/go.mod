module github.com/ephemeralgo/ephemeral/bench

go 1.26.0

require (
	github.com/ThreeDotsLabs/watermill v1.5.1
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/alitto/pond/v2 v2.7.1
	github.com/avast/retry-go/v5 v5.1.1
	github.com/cenkalti/backoff/v7 v7.0.3
	github.com/dgraph-io/ristretto/v2 v2.4.2
	github.com/ephemeralgo/ephemeral/atoms/batching v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/data v0.1.0
	github.com/ephemeralgo/ephemeral/atoms/data/file v0.1.0
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
	github.com/ephemeralgo/ephemeral/patterns/jobs v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/keyedpriorityfanout v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/logging v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/persistentwindow v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/reactivefanout v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/signalcoordinatedreads v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/signallogwatcher v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/statuspage v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/telemetry v0.1.0
	github.com/failsafe-go/failsafe-go v0.9.8
	github.com/go-co-op/gocron/v2 v2.21.2
	github.com/hashicorp/golang-lru/v2 v2.0.7
	github.com/hibiken/asynq v0.26.0
	github.com/jellydator/ttlcache/v3 v3.4.1
	github.com/maypok86/otter/v2 v2.4.0
	github.com/panjf2000/ants/v2 v2.12.1
	github.com/sony/gobreaker/v2 v2.4.0
	github.com/sourcegraph/conc v0.3.0
	github.com/stretchr/testify v1.12.1
	github.com/throttled/throttled/v2 v2.15.0
	go.opentelemetry.io/otel v1.47.0
	go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp v1.47.0
	go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp v1.47.0
	go.opentelemetry.io/otel/sdk/metric v1.47.0
	golang.org/x/sync v0.24.0
	golang.org/x/time v0.16.0
)

require (
	github.com/antithesishq/antithesis-sdk-go v0.9.0-default-no-op // indirect
	github.com/cenkalti/backoff/v5 v5.0.3 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
	github.com/google/go-tpm v0.9.8 // indirect
	github.com/grpc-ecosystem/grpc-gateway/v2 v2.30.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/jonboulle/clockwork v0.5.0 // indirect
	github.com/klauspost/compress v1.20.4 // indirect
	github.com/lithammer/shortuuid/v3 v3.0.7 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/minio/highwayhash v1.0.4 // indirect
	github.com/nats-io/jwt/v2 v2.8.3 // indirect
	github.com/nats-io/nats-server/v2 v2.15.3 // indirect
	github.com/nats-io/nats.go v1.55.0 // indirect
	github.com/nats-io/nkeys v0.4.17 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	github.com/ncruces/go-strftime v1.1.0 // indirect
	github.com/oklog/ulid v1.3.1 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/redis/go-redis/v9 v9.14.1 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/riverqueue/river/riverdriver v0.51.1 // indirect
	github.com/riverqueue/river/rivershared v0.51.1 // indirect
	github.com/riverqueue/river/rivertype v0.51.1 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/spf13/cast v1.10.0 // indirect
	github.com/tidwall/gjson v1.20.0 // indirect
	github.com/tidwall/match v1.2.0 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.opentelemetry.io/otel/exporters/otlp/otlptrace v1.47.0 // indirect
	go.opentelemetry.io/proto/otlp v1.11.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/net v0.61.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260928230214-8a89bd6388cc // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260928230214-8a89bd6388cc // indirect
	google.golang.org/grpc v1.83.2 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
	modernc.org/libc v1.79.0 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
	modernc.org/sqlite v1.61.1 // indirect
)

require (
	github.com/bits-and-blooms/bitset v1.24.4 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dustin/go-humanize v1.1.0 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/hashicorp/golang-lru v0.5.4 // indirect
	github.com/jackc/pgx/v5 v5.12.0
	github.com/riverqueue/river v0.51.1
	github.com/riverqueue/river/riverdriver/riverpgxv5 v0.51.1
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel/log v1.47.0 // indirect
	go.opentelemetry.io/otel/metric v1.47.0 // indirect
	go.opentelemetry.io/otel/sdk v1.47.0
	go.opentelemetry.io/otel/trace v1.47.0 // indirect
	go.uber.org/atomic v1.7.0 // indirect
	go.uber.org/multierr v1.9.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace (
	github.com/ephemeralgo/ephemeral/atoms/batching => ../atoms/batching
	github.com/ephemeralgo/ephemeral/atoms/data => ../atoms/data
	github.com/ephemeralgo/ephemeral/atoms/data/file => ../atoms/data/file
	github.com/ephemeralgo/ephemeral/atoms/data/sqlite => ../atoms/data/sqlite
	github.com/ephemeralgo/ephemeral/atoms/durable => ../atoms/durable
	github.com/ephemeralgo/ephemeral/atoms/durable/flow => ../atoms/durable/flow
	github.com/ephemeralgo/ephemeral/atoms/durable/postgres => ../atoms/durable/postgres
	github.com/ephemeralgo/ephemeral/atoms/durable/sqlite => ../atoms/durable/sqlite
	github.com/ephemeralgo/ephemeral/atoms/echo => ../atoms/echo
	github.com/ephemeralgo/ephemeral/atoms/fixedwork => ../atoms/fixedwork
	github.com/ephemeralgo/ephemeral/atoms/hedge => ../atoms/hedge
	github.com/ephemeralgo/ephemeral/atoms/keyedsequential => ../atoms/keyedsequential
	github.com/ephemeralgo/ephemeral/atoms/mesh => ../atoms/mesh
	github.com/ephemeralgo/ephemeral/atoms/mesh/embedded => ../atoms/mesh/embedded
	github.com/ephemeralgo/ephemeral/atoms/molecules => ../atoms/molecules
	github.com/ephemeralgo/ephemeral/atoms/priorityprocessor => ../atoms/priorityprocessor
	github.com/ephemeralgo/ephemeral/atoms/ratelimit => ../atoms/ratelimit
	github.com/ephemeralgo/ephemeral/atoms/retry => ../atoms/retry
	github.com/ephemeralgo/ephemeral/atoms/scheduledtasks => ../atoms/scheduledtasks
	github.com/ephemeralgo/ephemeral/atoms/signalaware => ../atoms/signalaware
	github.com/ephemeralgo/ephemeral/atoms/slidingcache => ../atoms/slidingcache
	github.com/ephemeralgo/ephemeral/atoms/sqlitewriter => ../atoms/sqlitewriter
	github.com/ephemeralgo/ephemeral/atoms/volatile => ../atoms/volatile
	github.com/ephemeralgo/ephemeral/atoms/waveorchestrator => ../atoms/waveorchestrator
	github.com/ephemeralgo/ephemeral/atoms/windowsize => ../atoms/windowsize
	github.com/ephemeralgo/ephemeral/core => ../core
	github.com/ephemeralgo/ephemeral/patterns/adaptiverate => ../patterns/adaptiverate
	github.com/ephemeralgo/ephemeral/patterns/anomalydetector => ../patterns/anomalydetector
	github.com/ephemeralgo/ephemeral/patterns/backpressure => ../patterns/backpressure
	github.com/ephemeralgo/ephemeral/patterns/circuitbreaker => ../patterns/circuitbreaker
	github.com/ephemeralgo/ephemeral/patterns/controlledfanout => ../patterns/controlledfanout
	github.com/ephemeralgo/ephemeral/patterns/dynamicconcurrency => ../patterns/dynamicconcurrency
	github.com/ephemeralgo/ephemeral/patterns/dynamicworkflow => ../patterns/dynamicworkflow
	github.com/ephemeralgo/ephemeral/patterns/jobs => ../patterns/jobs
	github.com/ephemeralgo/ephemeral/patterns/keyedpriorityfanout => ../patterns/keyedpriorityfanout
	github.com/ephemeralgo/ephemeral/patterns/logging => ../patterns/logging
	github.com/ephemeralgo/ephemeral/patterns/persistentwindow => ../patterns/persistentwindow
	github.com/ephemeralgo/ephemeral/patterns/reactivefanout => ../patterns/reactivefanout
	github.com/ephemeralgo/ephemeral/patterns/signalcoordinatedreads => ../patterns/signalcoordinatedreads
	github.com/ephemeralgo/ephemeral/patterns/signallogwatcher => ../patterns/signallogwatcher
	github.com/ephemeralgo/ephemeral/patterns/statuspage => ../patterns/statuspage
	github.com/ephemeralgo/ephemeral/patterns/telemetry => ../patterns/telemetry
)
