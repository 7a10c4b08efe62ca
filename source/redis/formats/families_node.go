package formats

// nodeFamilies are the lock libraries of Node.js.
var nodeFamilies = []*family{
	familyBullMQJob, familyBullJob, familyBullMQDedup,
	familyRedisSemaphoreMutex, familyRedisSemaphoreSemaphore,
	familyErrorceptionRedisLock,
	familyNodeRedisLock,
	familyNodeRedlock, familyIoredisLock,
}
