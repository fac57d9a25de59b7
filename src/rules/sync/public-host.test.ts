import { expect, test } from "vitest";
import { isPublicAddress, resolveHost } from "./public-host.ts";

test.each([
  ...["0.0.0.0", "10.1.2.3", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254"],
  ...["168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.168.1.1"],
  ...["198.19.0.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255"],
  ...["::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:93.184.216.34"],
  ...["64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:1::", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%lo"],
  ...["fec0::1", "ff02::1", "", "localhost", "1.2.3", "2130706433"],
])("%s is not public", (address) => {
  expect(isPublicAddress(address)).toBe(false);
});

test.each(["93.184.216.34", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700:4700::1111", "2a00:1450::1"])(
  "%s is public",
  (address) => {
    expect(isPublicAddress(address)).toBe(true);
  },
);

const known = (...addresses: string[]) => ({
  lookupHost: async () => addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
});

test("refuses a name if one of its addresses is not public", async () => {
  expect(await resolveHost("a.example", known("1.1.1.1", "10.0.0.1"))).toEqual({
    reason: "a.example leads to 10.0.0.1, which is not a public address. Use --allow-private to fetch from it",
  });
  const both = known("1.1.1.1", "2606:4700:4700::1111");
  expect(await resolveHost("a.example", both)).toEqual({ addresses: await both.lookupHost() });
});

test("does not look up an address, and ignores brackets around it", async () => {
  const never = { lookupHost: () => Promise.reject(new Error("looked up")) };
  expect(await resolveHost("1.1.1.1", never)).toEqual({ addresses: [{ address: "1.1.1.1", family: 4 }] });
  expect(await resolveHost("[::1]", never)).toMatchObject({ reason: expect.stringMatching(/^::1 is no/) });
  expect(await resolveHost("[::1]", { ...never, allowPrivate: true })).toMatchObject({
    addresses: [{ address: "::1" }],
  });
});
