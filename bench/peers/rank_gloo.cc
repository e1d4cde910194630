/* SPDX-License-Identifier: MIT
 * Gloo as its users have it: a full mesh of TCP pairs, rendezvous by files, default algorithms. */
#include "bench/peers/rank.h"

#include <arpa/inet.h>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <cstdio>
#include <memory>

namespace {

std::shared_ptr<gloo::rendezvous::Context> context;

template <typename Work> int guarded(Work work)
{
	try {
		work();
		return 0;
	} catch (const std::exception &e) {
		std::fprintf(stderr, "gloo: %s\n", e.what());
		return -1;
	}
}

/* This host's address: its first interface that is up and not the loopback. */
std::string own_address(const struct gcb_place *p)
{
	char text[INET_ADDRSTRLEN] = "127.0.0.1";
	struct ifaddrs *all = nullptr;

	if (p->one_net || getifaddrs(&all))
		return text;
	for (auto *i = all; i; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET ||
			!(i->ifa_flags & IFF_UP) || i->ifa_flags & IFF_LOOPBACK)
			continue;
		auto *in = reinterpret_cast<struct sockaddr_in *>(i->ifa_addr);
		inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
		break;
	}
	freeifaddrs(all);
	return text;
}

int open_gloo(struct gcb_place *p)
{
	return guarded([&] {
		gloo::transport::tcp::attr attr;
		gloo::rendezvous::FileStore store(p->dir);

		attr.hostname = own_address(p);
		auto device = gloo::transport::tcp::CreateDevice(attr);
		context = std::make_shared<gloo::rendezvous::Context>(p->rank, p->size);
		context->setTimeout(std::chrono::seconds(120));
		context->connectFullMesh(store, device);
	});
}

int bcast(void *buf, uint64_t nbytes)
{
	return guarded([&] {
		gloo::BroadcastOptions o(context);

		o.setOutput(static_cast<char *>(buf), nbytes);
		o.setRoot(0);
		gloo::broadcast(o);
	});
}

int allreduce(const float *in, float *out, uint64_t n)
{
	return guarded([&] {
		gloo::AllreduceOptions o(context);

		o.setInput(const_cast<float *>(in), n);
		o.setOutput(out, n);
		o.setReduceFunction(static_cast<void (*)(void *, const void *, const void *, size_t)>(
			&gloo::sum<float>));
		gloo::allreduce(o);
	});
}

int allgather(const void *in, void *out, uint64_t nbytes)
{
	return guarded([&] {
		gloo::AllgatherOptions o(context);

		o.setInput(static_cast<char *>(const_cast<void *>(in)), nbytes);
		o.setOutput(static_cast<char *>(out), nbytes * context->size);
		gloo::allgather(o);
	});
}

int barrier()
{
	return guarded([&] {
		gloo::BarrierOptions o(context);

		gloo::barrier(o);
	});
}

void close_gloo()
{
	context.reset();
}

} // namespace

extern "C" const struct gcb_lib gcb_lib_gloo = {
	"gloo", open_gloo, bcast, allreduce, allgather, barrier, close_gloo};
