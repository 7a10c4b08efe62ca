package scanner_test

import "strings"

type cmd = []any

// ordinaryKeys are some keys of one application.
type ordinaryKeys struct {
	app      string
	commands []cmd
}

const (
	someUUID  = "5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17"
	someHex32 = "9f86d081884c7d659a2feaa0c55ad015"
	someHex40 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"
	someJID   = "b4a577edbccf1d805744efa9"
	pickled   = "\x80\x04\x95\x1e\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x04name\x94\x8c\x05alice\x94s."
	marshaled = "\x04\bo: ActiveSupport::Cache::Entry\t:\v@valueI\"\aok\x06:\x06ET:\r@version0:\x10@created_atf\x160"
)

// ordinary is what such applications keep in Redis beside their locks.
var ordinary = []ordinaryKeys{
	{"Sidekiq", []cmd{
		{"SADD", "queues", "default", "mailers"},
		{"LPUSH", "queue:default", `{"class":"HardJob","args":[1],"jid":"` + someJID + `","created_at":1794970000.1,"retry":true}`},
		{"SET", "stat:processed", "102938"},
		{"SET", "stat:failed:2026-11-21", "3"},
		{"SADD", "processes", "web-1:4711:0f8fad5bd9cb"},
		{"HSET", "web-1:4711:0f8fad5bd9cb", "info", `{"hostname":"web-1","pid":4711}`, "busy", "2", "beat", "1794970000.5", "quiet", "false"},
		{"HSET", "web-1:4711:0f8fad5bd9cb:work", "tid1", `{"queue":"default","run_at":1794970000}`},
		{"ZADD", "retry", 1794970000.5, `{"class":"HardJob","jid":"` + someJID + `"}`},
		{"ZADD", "dead", 1794970000.5, `{"class":"HardJob","jid":"` + someJID + `"}`},
	}},
	{"Celery", []cmd{
		{"LPUSH", "celery", `{"body":"W1s0MiwgNDJdXQ==","headers":{"lang":"py","id":"` + someUUID + `"}}`},
		{"SADD", "_kombu.binding.celery", "celery\x06\x16\x06\x16celery"},
		{"SET", "celery-task-meta-" + someUUID, `{"status":"SUCCESS","result":84,"task_id":"` + someUUID + `"}`, "EX", 86400},
		{"HSET", "unacked", someUUID, `[{"body":"..."}, "", "celery"]`},
		{"ZADD", "unacked_index", 1794970000.5, someUUID},
	}},
	{"Rails cache", []cmd{
		{"SET", "views/products/1-20261121030000000000/" + someHex32, marshaled, "EX", 3600},
		{"SET", "cache:v1:user/7/permissions", marshaled},
		{"SET", "rack::attack:29916166:req/ip:10.0.0.7", "17", "EX", 60},
		{"SET", "_session_id:2::" + strings.Repeat("9f86d081", 8), "\x04\b{\x06I\"\x10_csrf_token\x06:\x06EF"},
		{"SET", "feature/flipper/enabled", "true"},
	}},
	{"Django cache", []cmd{
		{"SET", ":1:user_profile_7", pickled, "EX", 300},
		{"SET", ":1:django.contrib.sessions.cachex1kq0q7wz2m9d4f8r6t3y5u7i1o0pasd", pickled, "EX", 1209600},
		{"SET", ":1:views.decorators.cache.cache_header..17abf5259517d604cc9599a00b7385d6.en-us.UTC", pickled, "EX", 600},
		{"SET", ":1:counter", "17"},
	}},
	{"Laravel", []cmd{
		{"SET", "laravel_database_laravel_cache_:products.all", `a:1:{i:0;O:8:"stdClass":1:{s:2:"id";i:7;}}`, "EX", 3600},
		{"SET", "laravel_database_laravel_cache_:hits", "17"},
		{"SET", "laravel_cache_:aB3dE5gH7jK9mN1paB3dE5gH7jK9mN1paB3dE5gH", `s:42:"a:1:{s:6:"_token";s:10:"0123456789";}";"`, "EX", 7200},
		{"RPUSH", "laravel_database_queues:default", `{"uuid":"` + someUUID + `","displayName":"App\\Jobs\\Import","attempts":0}`},
		{"ZADD", "laravel_database_queues:default:reserved", 1794970090, `{"uuid":"` + someUUID + `"}`},
		{"ZADD", "laravel_database_queues:default:delayed", 1794970090, `{"uuid":"` + someUUID + `"}`},
		{"HSET", "laravel_horizon:" + someUUID, "id", someUUID, "status", "completed"},
		{"SET", "laravel_database_laravel_cache_:illuminate:queue:restart", "i:1794970000;"},
	}},
	{"Spring Session", []cmd{
		{"HSET", "spring:session:sessions:" + someUUID, "creationTime", "\xac\xed\x00\x05sr\x00\x0ejava.lang.Long", "maxInactiveInterval", "\xac\xed\x00\x05sr\x00\x11java.lang.Integer"},
		{"SET", "spring:session:sessions:expires:" + someUUID, "", "EX", 1800},
		{"SADD", "spring:session:expirations:1794970020000", "\xac\xed\x00\x05t\x00\x2cexpires:" + someUUID},
		{"SADD", "spring:session:index:org.springframework.session.FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME:alice", someUUID},
	}},
	{"Spring Cache", []cmd{
		{"SET", "books::1", "\xac\xed\x00\x05sr\x00\x10com.example.Book", "EX", 600},
		{"SET", "books::SimpleKey []", "\xac\xed\x00\x05sr\x00\x13java.util.ArrayList"},
		{"SET", "spring:cache:token::7", `"` + someUUID + `"`, "EX", 600},
	}},
	{"WordPress object cache", []cmd{
		{"SET", "wp:options:alloptions", `a:2:{s:7:"siteurl";s:19:"https://example.com";s:4:"home";s:19:"https://example.com";}`},
		{"SET", "wp:posts:12", `O:8:"stdClass":1:{s:2:"ID";i:12;}`},
		{"SET", "wp:transient:doing_cron", "1794970000.1234560013085937500000"},
		{"SET", "wp:posts:last_changed", "0.12345600 1794970000"},
		{"SET", "wp:user_meta:1", "a:0:{}"},
	}},
	{"Magento", []cmd{
		{"HSET", "zc:k:b0c_CONFIG_GLOBAL", "d", "a:1:{}", "t", "b0c_CONFIG,b0c_MAGE", "m", "1794970000", "i", "0"},
		{"SADD", "zc:ti:b0c_MAGE", "b0c_CONFIG_GLOBAL"},
		{"SADD", "zc:tags", "b0c_MAGE", "b0c_CONFIG"},
		{"HSET", "sess_x1kq0q7wz2m9d4f8r6t3y5u7i1", "data", "_session_validator_data|a:0:{}", "lock", "0", "wait", "1", "pid", "web-1|4711", "writes", "3"},
	}},
	{"Discourse", []cmd{
		{"SET", "default:last_backup_at", "1794970000"},
		{"ZADD", "__mb_backlog_n_$|$/latest", 17, "17|/latest|{}"},
		{"SET", "__mb_backlog_id_n_$|$/latest", "17"},
		{"HSET", "default:site_settings:version", "v", "7"},
		{"SET", "default:d-theme:7", "{}"},
	}},
	{"GitLab", []cmd{
		{"SET", "etag:/group/project/noteable/issue/7/notes", someHex32, "EX", 1200},
		{"SET", "cache:gitlab:application_settings:16.0", marshaled},
		{"SET", "session:gitlab:2::" + strings.Repeat("9f86d081", 8), "\x04\b{\x00", "EX", 604800},
		{"SET", "cache:gitlab:exists?:group/project", "1"},
		{"SADD", "session:lookup:user:gitlab:7", someHex32},
		{"SET", "gitlab:web_hooks:recursion", "1", "EX", 60},
	}},
	{"Sentry", []cmd{
		{"HSET", "b:k:sentry.group:" + someHex32, "i+times_seen", "3", "m", "sentry.models.Group"},
		{"ZADD", "b:p", 1794970000, "b:k:sentry.group:" + someHex32},
		{"HINCRBY", "ts:1:1794970000:7", "1", "3"},
		{"SET", "c:1:e:" + someHex32, "zlib\x78\x9c\x01", "EX", 3600},
		{"SET", "rl:api:29916166", "17", "EX", 60},
		{"SET", "l:en", "English"},
		{"SET", "l:hash:7", someHex32},
		{"LPUSH", "l:recent", "1", "2"},
	}},
	{"Bull", []cmd{
		{"INCR", "bull:mail:id"},
		{"HSET", "bull:mail:1", "name", "__default__", "data", `{"to":"a@example.com"}`, "timestamp", "1794970000123", "delay", "0", "opts", "{}"},
		{"LPUSH", "bull:mail:wait", "1", "2"},
		{"ZADD", "bull:mail:completed", 1794970000123, "3"},
		{"ZADD", "bull:mail:delayed", 7352197120503808, "4"},
		{"HSET", "bull:mail:meta", "opts.maxLenEvents", "10000", "version", "bullmq:5.1.0"},
		{"XADD", "bull:mail:events", "*", "event", "completed", "jobId", "3"},
		{"SET", "bull:mail:stalled-check", "1794970000123", "PX", 30000},
		{"SADD", "bull:mail:stalled", "5"},
		{"SET", "bull:mail:priority", "3"},
	}},
	{"Resque", []cmd{
		{"SADD", "resque:queues", "default"},
		{"RPUSH", "resque:queue:default", `{"class":"Import","args":[7]}`},
		{"SET", "resque:worker:web-1:4711:default:started", "2026-11-21 03:00:00 +0000"},
		{"SET", "resque:worker:web-1:4711:default", `{"queue":"default","run_at":"2026-11-21T03:00:00Z"}`},
		{"SET", "resque:stat:processed", "102938"},
		{"RPUSH", "resque:delayed:1794970000", `{"class":"Import","args":[7]}`},
		{"ZADD", "resque:delayed_queue_schedule", 1794970000, "1794970000"},
		{"HSET", "resque:workers:heartbeat", "web-1:4711:default", "2026-11-21T03:00:00Z"},
	}},
	{"Airflow", []cmd{
		{"LPUSH", "default", `{"body":"W1tbImFpcmZsb3ciXV1d","headers":{"task":"airflow.executors.celery_executor.execute_command"}}`},
		{"SADD", "_kombu.binding.default", "default\x06\x16\x06\x16default"},
		{"SADD", "_kombu.binding.celeryev", "worker.#\x06\x16\x06\x16celeryev." + someUUID},
		{"SADD", "_kombu.binding.celery.pidbox", "\x06\x16\x06\x16celery@worker-1.celery.pidbox"},
	}},
	{"Superset", []cmd{
		{"SET", "superset_results" + someUUID, "\x78\x9c\xab\x56\x4a\xcb\xcf\x57", "EX", 86400},
		{"SET", "superset_" + someHex32, "!" + pickled, "EX", 300},
		{"SET", "superset_metadata_cache_" + someHex32, "!" + pickled},
		{"SET", "explore_form_data_" + someHex32, "!" + pickled},
	}},
	{"Mastodon", []cmd{
		{"ZADD", "feed:home:1", 111111111111111111, "111111111111111111"},
		{"SET", "timeline:1:accounts", "7"},
		{"SET", "subscribed:timeline:1", "1", "EX", 120},
		{"SADD", "unavailable_inboxes", "https://example.com/inbox"},
		{"SET", "cache:statuses/111111111111111111-20261121030000000000", marshaled},
		{"PFADD", "activity:logins:2938", "1", "2"},
		{"SET", "account_migration:7", "ok"},
		{"ZADD", "trending_statuses:all", 3.5, "111111111111111111"},
	}},
	{"Nextcloud", []cmd{
		{"SET", "ocabc123def4/core/appconfig", `{"version":"29.0.1"}`},
		{"SET", "ocabc123def4/JSCombiner-core-merged-template-prepend.js.deps", `"{\"core\":1794970000}"`},
		{"SET", "PHPREDIS_SESSION:x1kq0q7wz2m9d4f8r6t3y5u7i1", `encrypted_session_data|s:6:"abcdef";`, "EX", 1440},
		{"SET", "ocabc123def4/imagePath-" + someHex32 + "/core/logo.svg", `"/core/img/logo.svg"`},
	}},
	{"Harbor", []cmd{
		{"HSET", "{harbor_job_service_namespace}:job_stats:" + someHex32[:24], "id", someHex32[:24], "status", "Success", "check_in", "7"},
		{"SADD", "{harbor_job_service_namespace}:worker_pools", someHex32[:24]},
		{"HSET", "{harbor_job_service_namespace}:worker_pools:" + someHex32[:24], "heartbeat_at", "1794970000", "host", "core-1", "pid", "1"},
		{"SADD", "{harbor_job_service_namespace}:known_jobs", "REPLICATION", "IMAGE_SCAN"},
		// gocraft/work counts how many of a job run, and by which pool.
		{"SET", "{harbor_job_service_namespace}:jobs:REPLICATION:lock", "0"},
		{"HSET", "{harbor_job_service_namespace}:jobs:REPLICATION:lock_info", someHex32[:24], "0"},
		{"SET", "{harbor_job_service_namespace}:jobs:IMAGE_SCAN:lock", "2"},
		{"HSET", "{harbor_job_service_namespace}:jobs:IMAGE_SCAN:lock_info", someHex32[:24], "2"},
		{"SET", "cache:project:library", "\x82\xa2id\x01"},
	}},
	{"Kong", []cmd{
		{"SET", "ratelimit:" + someUUID + ":0f8fad5b-d9cb-469f-a165-70867728950e:10.0.0.7:1794970000:minute", "17", "EX", 60},
		{"SET", "kong_oidc_session:" + someHex32, `{"data":"x"}`, "EX", 3600},
		{"SET", "proxy-cache:" + someHex32, `{"status":200}`, "EX", 300},
	}},
	{"Strapi", []cmd{
		{"SET", "strapi:rest-cache:/api/articles?populate=*&" + someHex40, `{"data":[]}`, "EX", 3600},
		{"SET", "etag:strapi:/api/articles", `"` + someHex40 + `"`},
	}},
	{"Express sessions", []cmd{
		{"SET", "sess:" + "x1kq0Q7wZ2m9d4F8r6T3y5U7i1O0pAsD", `{"cookie":{"originalMaxAge":86400000},"passport":{"user":7}}`, "EX", 86400},
		{"SET", "otp:7", "482913", "EX", 300},
		{"SET", "password-reset:" + someHex40, "7", "EX", 3600},
		{"SET", "refresh:7", someUUID, "EX", 2592000},
		{"SET", "api-key:7", someHex32},
		{"SET", "csrf:7", "t3XyRjQ8pW0vKc5nZb2LdA==", "EX", 3600},
		{"SET", "invite:7", "pX9_tR2vQ-8mKc4nZb7LdA", "EX", 3600},
		{"SET", "nonce:7", "q8Zt4vN1xKp0Rw7LmB3yHs2U", "EX", 60},
		{"SET", "{tenant}", someUUID},
		{"SET", "{user:7}", `{"name":"alice"}`},
		{"ZADD", "{poll}:timeout", 1794970000123, "room:7"},
		{"SADD", "article.readers", "alice", "bob"},
		{"SET", "article.writer", "alice"},
	}},
	{"RedisInsight tutorials", []cmd{
		{"ZADD", "leaderboard:2026", 17.5, "alice", 3, "bob"},
		{"HSET", "user:7", "name", "alice", "mode", "read", "visits", "3"},
		{"HSET", "cart:7", "sku-1", "2", "sku-9", "1"},
		{"GEOADD", "stations", 13.36, 38.11, "Palermo"},
		{"SETBIT", "online:2026-11-21", 7, 1},
		{"XADD", "orders", "*", "sku", "1"},
	}},
}
