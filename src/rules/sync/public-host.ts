/** Checks which machine a name leads to. The author of a pack must not reach addresses that only this machine or its
 *  network can. */
import { lookup } from "node:dns/promises";
import { BlockList, isIP } from "node:net";

export interface HostAddress {
  readonly address: string;
  readonly family: number;
}

export type ResolvedHost = { readonly addresses: readonly HostAddress[] } | { readonly reason: string };

export interface ResolveOptions {
  /** Also accepts machines in this network. */
  readonly allowPrivate?: boolean | undefined;
  /** Returns all addresses of a name. The default is the system's lookup. */
  readonly lookupHost?: ((name: string) => Promise<readonly HostAddress[]>) | undefined;
}

/** Returns the addresses of a host, which is a name or an address. If one of them is not public, the host is refused.
 *  Connect to these addresses: the next lookup may return others. Throws if the name is unknown. */
export async function resolveHost(host: string, options: ResolveOptions = {}): Promise<ResolvedHost> {
  const { allowPrivate = false, lookupHost = (name) => lookup(name, { all: true }) } = options;
  const name = host.replace(/^\[(.*)\]$/, "$1");
  const family = isIP(name);
  const addresses = family === 0 ? await lookupHost(name) : [{ address: name, family }];
  const found = allowPrivate ? undefined : addresses.find(({ address }) => !isPublicAddress(address));
  if (found === undefined) return { addresses };
  const leads = family === 0 ? `${name} leads to ${found.address}, which is` : `${name} is`;
  return { reason: `${leads} not a public address. Use --allow-private to fetch from it` };
}

/** Returns false for addresses that only this machine, its network or its host can reach, and for texts that are not
 *  addresses. */
export function isPublicAddress(address: string): boolean {
  // A zone names an interface of this machine.
  const family = address.includes("%") ? 0 : isIP(address);
  if (family === 0) return false;
  return family === 4 ? !notPublic.ipv4.check(address, "ipv4") : !notPublic.ipv6.check(address, "ipv6");
}

/** From the registries of special addresses (IANA, 2025), and the addresses that clouds use for their own services. */
const ranges: readonly string[] = [
  "0.0.0.0/8", // this machine
  "10.0.0.0/8", // private
  "100.64.0.0/10", // shared by a provider's customers; metadata of Alibaba Cloud
  "127.0.0.0/8", // loopback
  "168.63.129.16/32", // Azure's host
  "169.254.0.0/16", // link-local; metadata of most clouds
  "172.16.0.0/12", // private
  "192.0.0.0/24", // protocols; metadata of Oracle Cloud
  "192.0.2.0/24", // examples
  "192.88.99.0/24", // relays to IPv6
  "192.168.0.0/16", // private
  "198.18.0.0/15", // benchmarks
  "198.51.100.0/24", // examples
  "203.0.113.0/24", // examples
  "224.0.0.0/4", // multicast
  "240.0.0.0/4", // reserved, broadcast
  "::/96", // unspecified, loopback, old forms of IPv4
  "::ffff:0:0/96", // IPv4 in IPv6
  "::ffff:0:0:0/96", // IPv4, translated
  "64:ff9b::/96", // IPv4, translated
  "64:ff9b:1::/48", // IPv4, translated
  "100::/64", // thrown away
  "2001::/23", // protocols, tunnels
  "2001:db8::/32", // examples
  "2002::/16", // tunnels to IPv4
  "3fff::/20", // examples
  "5f00::/16", // routing
  "fc00::/7", // private; metadata of AWS
  "fe80::/10", // link-local
  "fec0::/10", // site-local
  "ff00::/8", // multicast
];

/** One list each: in a common list, the range of IPv4 in IPv6 would match every IPv4 address. */
const notPublic = { ipv4: new BlockList(), ipv6: new BlockList() };
for (const range of ranges) {
  const [network = "", bits] = range.split("/");
  const type = isIP(network) === 4 ? "ipv4" : "ipv6";
  notPublic[type].addSubnet(network, Number(bits), type);
}
