package formats

// jvmFamilies are the lock libraries of Java and other languages of the JVM.
var jvmFamilies = []*family{
	familyRedissonPermitSemaphore, familyRedissonSemaphore, familyRedissonLatch,
	// Fair and fenced are a plain lock with more beside it, so before it.
	familyRedissonFair, familyRedissonFenced, familyRedisson,
	familyRedissonRWWrite, familyRedissonRWRead, familyRedissonFasterMultilock,
	familyShedLock, familySpringIntegration, familyRedlock4j,
}
