package formats

// familyCeleryOnce is celery-once's QueueOnce: redis-py's lock under
// qo_<task>_<argument>-<value>…, one hour by default.
// Source: cameronmaske/celery-once celery_once/{helpers,backends/redis}.py.
var familyCeleryOnce = timeUUIDFamily("celery-once", prefixed("qo_"), 0)
