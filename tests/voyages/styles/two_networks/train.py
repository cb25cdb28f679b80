"""In the style of the DCGAN example: generator and discriminator are saved in two files."""
import argparse
import os

import job
import torch

parser = argparse.ArgumentParser()
parser.add_argument('--niter', type=int, default=14, help='number of epochs to train for')
parser.add_argument('--netG', default='', help="path to netG (to continue training)")
parser.add_argument('--netD', default='', help="path to netD (to continue training)")
parser.add_argument('--outf', default='.', help='folder to output images and model checkpoints')
opt = parser.parse_args()
print(opt)
os.makedirs(opt.outf, exist_ok=True)

netG = torch.Linear()
if opt.netG != '':
    netG.load_state_dict(torch.load(opt.netG))
netD = torch.Linear()
if opt.netD != '':
    netD.load_state_dict(torch.load(opt.netD))
optimizerD = torch.SGD(netD)
optimizerG = torch.SGD(netG)

for epoch in range(opt.niter):
    for i in range(4):
        optimizerD.step()
        optimizerG.step()
        print('[%d/%d][%d/%d] Loss_D: %.4f Loss_G: %.4f' % (epoch, opt.niter, i, 4, 0.5, 1 / (epoch + 1)))
    torch.save(netG.state_dict(), '%s/netG_epoch_%d.pth' % (opt.outf, epoch))
    torch.save(netD.state_dict(), '%s/netD_epoch_%d.pth' % (opt.outf, epoch))
    job.spend()
